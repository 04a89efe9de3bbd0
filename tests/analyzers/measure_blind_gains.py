"""Measure what the fix of each blind case saves, and write it into the table.

Problem and healthy program take turns, each time in a fresh process. The time begins after the import
of the frameworks, because the fix does not change that. With profiles, the savings in the table are instead
compared with what the findings expected.
"""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from deepcontext.profiler.model.profile import Profile
from deepcontext.profiler.summaries.setup_time import setup_time
from tests.analyzers.measure_blind_cases import FOLDER, Case, cases, findings, record, telling

if TYPE_CHECKING:
    from typing import Any

# Share by which two runs beside other work may differ.
_NOISE = 0.1
_PROGRAM = """
import resource, runpy, sys, time, warnings
warnings.simplefilter("ignore")
program = sys.argv[1]
text = open(program).read()
if "import torch" in text:
    import torch, torch.utils.data
    if "torch.compile" in text:
        import torch._dynamo
if "import jax" in text:
    import jax.numpy
    jax.numpy.zeros(1).block_until_ready()
sys.argv = [program]
begin = time.perf_counter()
runpy.run_path(program, run_name="__main__")
seconds = time.perf_counter() - begin
print("\\nMEASURED", seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


def run(program: Path) -> tuple[float, int]:
    """Return the seconds that a program takes, and the most bytes that its process holds."""
    made = subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(program)], capture_output=True, text=True, check=True
    )
    seconds, held = made.stdout.rsplit("MEASURED", 1)[1].split()
    return float(seconds), int(held)


def ratios(case: Case, runs: int) -> tuple[float, float]:
    """Return time and peak memory of the problem as multiples of the healthy program's."""
    pairs = [(run(case.program("problem")), run(case.program("healthy"))) for _ in range(runs)]
    seconds, held = (
        [statistics.median(pair[kind][what] for pair in pairs) for kind in (0, 1)]
        for what in (0, 1)
    )
    return seconds[0] / seconds[1], held[0] / held[1]


def write(name: str, ratio: float) -> None:
    table = FOLDER / "cases.toml"
    pattern = rf'(name = "{name}"\n(?:(?!\[\[).*\n)*?ratio = )[0-9.]+'
    table.write_text(re.sub(pattern, rf"\g<1>{ratio:.2f}", table.read_text()))


def compare(case: Case, folder: Path) -> None:
    """Print what a case's finding expected, and what the fix saved when it was measured."""
    made = record(case.program("problem"), folder)
    profile = Profile.load(made)
    gains = [
        one["gain"] for one in telling(case, findings(made), profile) if one["severity"] != "info"
    ]
    time = setup_time(profile)
    if case.measure != "time" or not gains or not gains[0] or time is None:
        return
    whole = time.working_ns + time.compiling_ns
    saved = 1 - 1 / case.ratio
    print(f"{case.name:28} saves {saved:4.0%}, {_expected(gains[0], whole, saved)}", flush=True)


def _expected(gain: dict[str, Any], whole: int, saved: float) -> str:
    bound = gain["upper_bound"] / whole
    if gain.get("low") is None:
        return f"bound {bound:.0%}, no range"
    low, high = gain["low"] / whole, gain["high"] / whole
    verdict = "below" if saved < low - _NOISE else "above" if saved > high + _NOISE else "inside"
    return f"expected {low:.0%} to {high:.0%}, {verdict}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument(
        "--only", action="append", help="name of a case; may be given several times"
    )
    parser.add_argument(
        "--profiles",
        type=Path,
        metavar="FOLDER",
        help="compare what findings expect with the table, and measure nothing; profiles are made there "
        "where missing",
    )
    options = parser.parse_args()
    for case in cases():
        if options.only and case.name not in options.only:
            continue
        if options.profiles:
            compare(case, options.profiles)
            continue
        time_ratio, memory_ratio = ratios(case, options.runs)
        print(f"{case.name:28} time {time_ratio:6.2f}x  memory {memory_ratio:5.2f}x", flush=True)
        write(case.name, memory_ratio if case.measure == "memory" else time_ratio)


if __name__ == "__main__":
    main()
