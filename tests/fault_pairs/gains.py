"""Measure what the fix of each pair saves, and compare it with what the finding expects.

usage: python -m tests.fault_pairs.gains FOLDER [--runs N] [--write] [NAME...]

The two programs of a pair take turns, each time in a fresh process; the time begins after the import of the
frameworks, because no fix changes that. The problem's profile is recorded into FOLDER where it is missing.
Ends with 1 if a fix saves less than its finding expects. `--write` writes the ratios into the table.
"""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import sys
from pathlib import Path

from deepcontext.analyzers import Severity
from deepcontext.profiler.summaries.setup_time import setup_time
from tests.fault_pairs.judging import findings, good_finding, path_of
from tests.fault_pairs.pairs import HEALTHY, HERE, PROBLEM, Pair, pairs
from tests.fault_pairs.record import record

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


def ratio(pair: Pair, folder: Path, runs: int) -> float:
    """Return the time or peak memory of the problem as a multiple of the healthy program's."""
    programs = []
    for kind in (PROBLEM, HEALTHY):
        programs.append(folder / f"{pair.name}_{kind}.py")
        programs[-1].write_text(pair.text(kind), encoding="utf-8")
    measured = [[_run(program, pair.measure) for program in programs] for _ in range(runs)]
    problem, healthy = map(statistics.median, zip(*measured, strict=True))
    return problem / healthy


def _run(program: Path, measure: str) -> float:
    command = [sys.executable, "-c", _PROGRAM, str(program)]
    made = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, held_bytes = made.stdout.rsplit("MEASURED", 1)[1].split()
    return float(held_bytes if measure == "memory" else seconds)


def expected(pair: Pair, folder: Path) -> tuple[float, float] | None:
    """Return what the good finding expects, as shares of the run's work; None without a range."""
    record(pair, PROBLEM, folder)
    profile, found = findings(path_of(folder, pair.name, PROBLEM))
    _, right = good_finding(pair, profile, found)
    time = setup_time(profile)
    if right is None or right.severity is Severity.INFO or time is None:
        return None
    if right.gain is None or right.gain.low is None or right.gain.high is None:
        return None
    whole = time.working_ns + time.compiling_ns
    return right.gain.low / whole, right.gain.high / whole


def write(name: str, measured: float) -> None:
    """Write a ratio into the table."""
    table = HERE / "pairs.toml"
    pattern = rf'(name = "{name}"\n(?:(?!\[\[).*\n)*?ratio = )[0-9.]+'
    table.write_text(re.sub(pattern, rf"\g<1>{measured:.2f}", table.read_text()))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--write", action="store_true", help="write the ratios into the table")
    parser.add_argument("names", nargs="*")
    options = parser.parse_intermixed_args()
    folder = options.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    verdicts = []
    for pair in pairs().values():
        if not pair.measure or (options.names and pair.name not in options.names):
            continue
        measured = ratio(pair, folder, options.runs)
        if options.write:
            write(pair.name, measured)
        saved = 1 - 1 / measured
        text = f"{pair.name:32} {pair.measure:6} {measured:6.2f}x"
        if pair.measure == "time" and (limits := expected(pair, folder)):
            low, high = limits
            is_less, is_more = saved < low - _NOISE, saved > high + _NOISE
            verdicts.append("less" if is_less else "more" if is_more else "as expected")
            text += f", saves {saved:.0%}, expected {low:.0%} to {high:.0%}: {verdicts[-1]}"
        print(text, flush=True)
    print({verdict: verdicts.count(verdict) for verdict in ("less", "as expected", "more")})
    return int("less" in verdicts)


if __name__ == "__main__":
    sys.exit(main())
