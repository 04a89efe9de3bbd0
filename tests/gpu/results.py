"""What a visit to a machine with a GPU brings home: a table, written line by line, and a summary.

Both are complete after every line and every test, so that a run that is cut short loses nothing. They
lie in the folder that $OUT names, else in build/gpu.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import subprocess
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

_PACKAGES: Final = ("torch", "triton", "jax", "jaxlib", "nvidia-cuda-cupti", "numpy", "pytest")
_ASK_DRIVER: Final = (
    "nvidia-smi",
    "--query-gpu=name,driver_version,memory.total",
    "--format=csv,noheader",
)


class Results:
    """The table and the summary of one command."""

    def __init__(self, folder: Path, part: str) -> None:
        """Begin both files; `part` is the command's name."""
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._table = folder / f"table-{part}.md"
        self._summary = folder / f"summary-{part}.json"
        self._begun = time.monotonic()
        self.content: dict[str, object] = {
            "part": part,
            "date": time.strftime("%Y-%m-%d", time.gmtime()),
            "machine": platform.node(),
            "python": platform.python_version(),
            "packages": {name: _version(name) for name in _PACKAGES},
            "device_and_driver": _driver(),
            "set_up_s": float(os.environ.get("DEEPCONTEXT_GPU_SET_UP_S", "0")),
        }
        self.tests: dict[str, dict[str, object]] = {}
        self._table.write_text("| check | measured | bound |\n|---|---|---|\n", encoding="utf-8")

    @property
    def elapsed_s(self) -> float:
        """Return the time since the beginning."""
        return time.monotonic() - self._begun

    def expect(self, tests: list[str]) -> None:
        """Remember the tests; those without an outcome were not reached."""
        for test in tests:
            self.tests.setdefault(test, {"outcome": "not reached"})
        self.write()

    def row(self, check: str, figure: str, bound: str = "") -> None:
        """Write a line of the table."""
        cells = (cell.replace("\n", " ").replace("|", "/") for cell in (check, figure, bound))
        with self._table.open("a", encoding="utf-8") as table:
            table.write(f"| {' | '.join(cells)} |\n")

    def end_test(self, test: str, outcome: str, seconds: float, why: str) -> None:
        """Remember how a test went."""
        self.tests[test] = {"outcome": outcome, "seconds": round(seconds, 1), "why": why}
        self.write()

    def write(self) -> None:
        """Write the summary."""
        counts: dict[str, int] = {}
        for test in self.tests.values():
            outcome = str(test["outcome"])
            counts[outcome] = counts.get(outcome, 0) + 1
        whole = self.content | {
            "elapsed_s": round(self.elapsed_s, 1),
            "outcomes": counts,
            "not_reached": [
                name for name, test in self.tests.items() if test["outcome"] == "not reached"
            ],
            "tests": self.tests,
        }
        self._summary.write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _driver() -> str:
    try:
        done = subprocess.run(_ASK_DRIVER, capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
