"""Measure what the profiler costs a program: runs with and without it, in pairs.

Does not judge and does not print. The two runs of a pair follow each other immediately, in random
order, so that other load on the machine affects both runs; only ratios inside a pair are used.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.errors import EnvironmentProblem, UserError
from deepcontext.profiler.model.profile import Profile
from deepcontext.profiler.recording.launch.command import (
    LaunchCommand,
    plain_command,
    profiled_command,
)
from deepcontext.profiler.summaries.basis import Part, basis_of
from deepcontext.profiler.summaries.phases import by_phase

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from deepcontext.profiler.recording.launch.options import LaunchOptions
    from deepcontext.profiler.recording.launch.program import Program

CONFIDENCE: Final = 0.95
_RESAMPLES: Final = 10_000
_SPAWNER: Final = Path(__file__).with_name("timed_child.py")
_TAIL_LINES: Final = 15


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the program.

    Attributes:
        wall_ns: time from the start of the process to its end, in ns.
        peak_rss_bytes: largest resident memory, in bytes.
    """

    wall_ns: int
    peak_rss_bytes: int


@dataclass(frozen=True, slots=True)
class Pair:
    """A plain and a profiled run, one after the other.

    Attributes:
        plain: the run without the profiler.
        profiled: the run with the profiler.
        start_ns: part of the profiled run spent on starting the session, in ns.
        stop_ns: part of the profiled run spent on stopping the session and writing the profile, in ns.
        file_bytes: size of the profile, in bytes.
        step_ns: time of a step of the profiled run's steady state, in ns; 0 without one.
        hooks_ns: part of a step in hooks of operators: its calls times the measured cost of a hook, in ns.
    """

    plain: Run
    profiled: Run
    start_ns: int
    stop_ns: int
    file_bytes: int
    step_ns: float = 0.0
    hooks_ns: float = 0.0


@dataclass(frozen=True, slots=True)
class Interval:
    """A ratio with its bootstrap interval: median of the pairs, and 95 % percentile bounds."""

    median: float
    low: float
    high: float


def ratio_interval(ratios: npt.NDArray[np.float64]) -> Interval:
    """Return the median of `ratios` with its percentile bootstrap interval.

    Args:
        ratios: one ratio per pair, shape (pairs,), float64.

    Source: Efron and Tibshirani, An Introduction to the Bootstrap, 1993, section 13.3. The seed is
    fixed, so that the same measurements always give the same interval.
    """
    generator = np.random.default_rng(0)
    picks = generator.integers(0, len(ratios), size=(_RESAMPLES, len(ratios)))
    medians = np.median(ratios[picks], axis=1)
    tail = 100 * (1 - CONFIDENCE) / 2
    low, high = np.percentile(medians, [tail, 100 - tail])
    return Interval(float(np.median(ratios)), float(low), float(high))


def measure_pairs(
    program: Program,
    options: LaunchOptions,
    count: int,
    *,
    on_pair: Callable[[int], None],
) -> list[Pair]:
    """Run `program` in `count` pairs, after one pair that is not counted.

    Args:
        program: the program, run with an empty standard input and discarded output.
        options: how to profile the program; each pair overwrites `output` and `timings`.
        count: number of pairs.
        on_pair: called with the number of counted pairs so far.

    Raises:
        UserError: the program failed, with the end of what it wrote to standard error.
    """
    plain, profiled = plain_command(program), profiled_command(program, options)
    generator = np.random.default_rng()
    pairs: list[Pair] = []
    for number in range(count + 1):
        on_pair(len(pairs))
        is_profiled_first = bool(generator.integers(2))
        pair = _measure_pair(plain, profiled, options, is_profiled_first=is_profiled_first)
        if number > 0:  # the first pair fills the caches of the file system
            pairs.append(pair)
    on_pair(len(pairs))
    return pairs


def _measure_pair(
    plain: LaunchCommand,
    profiled: LaunchCommand,
    options: LaunchOptions,
    *,
    is_profiled_first: bool,
) -> Pair:
    output, timings = Path(options.output), Path(options.timings)
    stderr = output.with_suffix(".stderr")
    output.unlink(missing_ok=True)
    timings.unlink(missing_ok=True)
    runs: dict[bool, Run] = {}
    for is_profiled in (is_profiled_first, not is_profiled_first):
        command = profiled if is_profiled else plain
        runs[is_profiled] = _run(command, stderr, is_profiled=is_profiled)
        if is_profiled and not (timings.exists() and output.exists()):
            raise EnvironmentProblem(
                "the profiled run left no profile: the profiler could not start, or the program "
                f"ends by os._exit; the end of its standard error:\n{_tail(stderr)}"
            )
    cost = json.loads(timings.read_text(encoding="utf-8"))
    size = output.stat().st_size
    step = _step(output)
    return Pair(runs[False], runs[True], cost["start_ns"], cost["stop_ns"], size, *step)


def _step(output: Path) -> tuple[float, float]:
    """Return the time of a step and of the hooks in it, (0, 0) for a run without a steady state."""
    basis = basis_of(Profile.load(output))
    if basis.part is not Part.STEADY:
        return 0.0, 0.0
    calls = sum(row.operator_calls for row in by_phase(basis.profile)) / basis.steps
    return basis.step_ns, calls * (basis.profile.trust.hook_cost_ns_per_event or 0.0)


def _run(command: LaunchCommand, stderr: Path, *, is_profiled: bool) -> Run:
    words = [sys.executable, "-I", "-S", str(_SPAWNER), str(stderr), *command.argv]
    spawner = subprocess.run(  # noqa: S603  the user's program
        words, env=command.environment, stdout=subprocess.PIPE, text=True, check=True
    )
    status, wall_ns, peak_kib = (int(word) for word in spawner.stdout.split())
    exit_code = os.waitstatus_to_exitcode(status)
    if exit_code != 0:
        raise UserError(
            f"the program failed {'with' if is_profiled else 'without'} the profiler "
            f"(exit code {exit_code}), so there is nothing to compare; the end of its standard "
            f"error:\n{_tail(stderr)}"
        )
    return Run(wall_ns, peak_kib * 1024)


def _tail(stderr: Path) -> str:
    lines = stderr.read_text(encoding="utf-8", errors="replace").splitlines()[-_TAIL_LINES:]
    return "\n".join(lines) or "(empty)"
