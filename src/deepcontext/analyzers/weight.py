"""How much a finding matters to the run, whatever the metric its analyzer judged by.

An analyzer's shares are of what it looked at: 90 % of the time in operators can be 4 % of a run that
mostly waits. Does not look for anything. Invariant: a finding's severity is never raised.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Final

from deepcontext.analyzers.finding import Finding, Severity
from deepcontext.profiler.run_time import run_time

if TYPE_CHECKING:
    from collections.abc import Callable

    from deepcontext.profiler.profile import Profile

# Metrics in ns of which saving one saves at most one of the elapsed time, and shares of that itself.
_TIMES: Final = frozenset({"cpu_time_ns", "device_time_ns", "gpu_time_ns"})
_ELAPSED: Final = frozenset({"elapsed time", "elapsed GPU time"})


def weighing(profile: Profile) -> Callable[[Finding], Finding]:
    """Return a function that gives a finding its share of the run, and lowers its severity to it.

    The severity is judged without imports and compiling: a trial of a few steps is mostly those.
    """
    time = run_time(profile)
    wall_ns = profile.run.wall_ns
    working_ns = 0 if time is None else time.working_ns

    def weigh(finding: Finding) -> Finding:
        gain = finding.gain
        if gain is None or wall_ns <= 0 or gain.metric not in _TIMES | _ELAPSED:
            return finding
        severity = finding.severity
        if working_ns > 0 and gain.metric in _TIMES:
            fair = Severity.of_share(gain.upper_bound / working_ns)
            severity = min(severity, fair, key=lambda each: each.rank)
        share = min(1.0, gain.upper_bound / wall_ns)
        gain = dataclasses.replace(gain, run_share=share)
        return dataclasses.replace(finding, gain=gain, severity=severity)

    return weigh
