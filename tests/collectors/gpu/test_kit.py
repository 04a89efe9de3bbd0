"""The fakes are a kit that others can use: what its page says, works."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parents[2]
PAGE = (ROOT / "tests" / "fakes" / "README.md").read_text(encoding="utf-8")


def test_every_scenario_is_shown_by_a_test() -> None:
    shown = re.findall(r"`(test_\w+\.py)::(test_\w+)`", PAGE)
    others = ("| scenario ", "| counter ", "| `count(")
    rows = [line for line in PAGE.split("\n") if line.startswith("| ")]
    assert len(shown) == sum(not row.startswith(others) for row in rows)
    for file, name in shown:
        assert f"def {name}(" in (FOLDER / file).read_text(encoding="utf-8")


def test_the_example_runs() -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    done = subprocess.run(
        [sys.executable, "-c", example],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.stdout == "3 3\n", done.stderr
