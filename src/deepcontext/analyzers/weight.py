"""How much a finding matters to the run, for any metric that its analyzer used.

An analyzer's shares refer to the time it looked at: 90 % of the time in operators can be 4 % of a run
that mostly waits. Does not search for findings. Invariants: a finding's severity is never raised; a
program that did almost no work has no finding of severity "high", nor a warning for a few milliseconds.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Final

from deepcontext.analyzers.finding import Finding, Gain, Severity
from deepcontext.analyzers.shared.processor_time import processor_share
from deepcontext.profiler.format.metric import DEVICE_TIME_NS, GPU_TIME_NS, HOST_TIME_NS
from deepcontext.profiler.model.run_info import ALL_RANKS
from deepcontext.profiler.summaries.basis import LEAST_STEADY_NS, Part, basis_of
from deepcontext.profiler.summaries.setup_time import setup_time

if TYPE_CHECKING:
    from collections.abc import Callable

    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.summaries.setup_time import SetupTime

# Metrics in ns where saving 1 ns saves at most 1 ns of elapsed time, and names for elapsed time itself.
_ELAPSED: Final = frozenset({"elapsed time", "elapsed GPU time"})
TIMES: Final = _ELAPSED | {each.name for each in (HOST_TIME_NS, DEVICE_TIME_NS, GPU_TIME_NS)}
_HOST_MEMORY: Final = "peak_bytes"
# First calls of operators, filling caches and growing heaps take tenths of a second in any program, so
# shares of a run that worked for less than this do not show that the program is worth changing.
LEAST_WORK_NS: Final = 1_000_000_000


def weighing(profile: Profile) -> Callable[[Finding], Finding]:
    """Return a function that adds a finding's share of its part, and lowers its severity to match."""
    basis = basis_of(profile)

    def weigh(finding: Finding) -> Finding:
        part = basis.of(finding.part)
        steps = basis.all_steps if part is basis.profile else 0
        finding = dataclasses.replace(finding, steps=steps)
        return part.once("weighing", lambda: _weighing(part))(finding)

    return weigh


def _weighing(profile: Profile) -> Callable[[Finding], Finding]:
    """Return what weighs findings of one part of a run.

    The severity is judged without imports and compiling, because a trial of a few steps consists
    mostly of both. A gain in elapsed time can include compiling.
    """
    time = setup_time(profile)
    wall_ns = profile.run.wall_ns
    processes = max(1, profile.run.ranks) if profile.run.rank == ALL_RANKS else 1
    # Other programs make a run longer, and not its work.
    least_ns = _least_work_ns(profile) * processes / processor_share(profile)

    def weigh(finding: Finding) -> Finding:
        gain = finding.gain
        worked_ns = _worked_ns(time, is_elapsed=gain is not None and gain.metric in _ELAPSED)
        # Without samples, the elapsed time is an upper bound of the time worked.
        most_ns = wall_ns if worked_ns is None else worked_ns
        if wall_ns > 0 and most_ns < least_ns:
            finding = _lowered(finding, Severity.WARNING)
        if gain is not None and gain.metric == _HOST_MEMORY and profile.run.peak_rss_bytes:
            return _with_share(finding, gain, profile.run.peak_rss_bytes)
        if gain is None or wall_ns <= 0 or gain.metric not in TIMES:
            return finding
        if worked_ns:
            # A share of almost nothing is nothing: shares of a shorter run refer to this much work.
            judged_ns = max(worked_ns, least_ns)
            finding = _lowered(finding, Severity.of_share(gain.upper_bound / judged_ns))
        return _with_share(finding, gain, wall_ns)

    return weigh


def _with_share(finding: Finding, gain: Gain, whole: int) -> Finding:
    gain = dataclasses.replace(gain, run_share=min(1.0, gain.upper_bound / whole))
    return dataclasses.replace(finding, gain=gain)


def _least_work_ns(profile: Profile) -> int:
    """Return the time of work below which shares say little; first calls are not in a steady state."""
    return LEAST_STEADY_NS if basis_of(profile).part is Part.STEADY else LEAST_WORK_NS


def _worked_ns(time: SetupTime | None, *, is_elapsed: bool) -> int | None:
    """Return the time that a gain is divided by, ns; None where time between operators is unknown."""
    if time is None:
        return None
    return time.working_ns + (time.compiling_ns if is_elapsed else 0)


def _lowered(finding: Finding, most: Severity) -> Finding:
    severity = min(finding.severity, most, key=lambda each: each.rank)
    return dataclasses.replace(finding, severity=severity)
