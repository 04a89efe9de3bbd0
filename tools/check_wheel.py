"""Check one wheel: what it was linked against, and that it holds nothing it should not.

    tools/check_wheel.py WHEEL

Prints one line, or exits with 1 and the reason.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Final

# Functions of libgcc's unwinder. A copy inside the core would meet frames of the process's own.
_UNWINDER: Final = re.compile(r" [TtWw] (_Unwind_\w+|__register_frame\w*)$", re.MULTILINE)
_EXPORTS: Final = re.compile(r" [TWVuBDRi] (\w+)(?:@\S+)?$", re.MULTILINE)
_ALLOWED: Final = re.compile(
    r"PyInit__native|deepcontext_\w+|deepcontextSetInjection|InitializeInjection\w*|ncclProfiler_v\d+"
)
_FOREIGN: Final = re.compile(r"(^|/)(tests|node_modules|benchmarks|__pycache__)/|\.(cpp|h|ts|tsx)$")


def problems(wheel: Path) -> list[str]:
    """Return what is wrong with the wheel; empty if nothing is."""
    with zipfile.ZipFile(wheel) as archive, tempfile.TemporaryDirectory() as folder:
        names = archive.namelist()
        found = [f"holds {name}" for name in names if _FOREIGN.search(name)]
        libraries = [name for name in names if name.endswith(".so")]
        if wheel.stem.endswith("none-any"):
            return found + [f"holds {name}" for name in libraries]
        if not any("/_native." in f"/{name}" for name in libraries):
            found.append("holds no native core")
        for name in libraries:
            found += _problems_of_library(Path(archive.extract(name, folder)), name)
    return found


def _problems_of_library(path: Path, name: str) -> list[str]:
    exported = _EXPORTS.findall(_output("nm", "-D", "--defined-only", path))
    foreign = [symbol for symbol in exported if not _ALLOWED.fullmatch(symbol)]
    unwinder = _UNWINDER.findall(_output("nm", "-D", path))
    found = []
    if foreign:
        found.append(f"{name} exports {len(foreign)} foreign symbols, {foreign[0]} among them")
    if unwinder:
        found.append(f"{name} has an unwinder of its own ({unwinder[0]})")
    return found


def _output(*command: str | Path) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main() -> int:
    """Check the wheel named on the command line."""
    wheel = Path(sys.argv[1])
    found = problems(wheel)
    for problem in found:
        print(f"{wheel.name}: {problem}", file=sys.stderr)
    if not found:
        print(f"{wheel.name}: {wheel.stat().st_size:,} bytes, in order")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
