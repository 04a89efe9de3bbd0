"""Do some steps take longer than the others: regularly, at random, at the start, or more and more?

Needs the histories and windows of a run with steps (`summaries/slow_steps.py`). What a line takes in each
step is the matter of other questions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.causes import ELAPSED, Cause
from deepcontext.profiler.format.metric import SLOW_STEP_TIME_NS
from deepcontext.profiler.model.elapsed import ELAPSED_TIME_NS
from deepcontext.profiler.model.metric_values import exclusive_or_zeros
from deepcontext.profiler.summaries import slow_steps as summary
from deepcontext.profiler.summaries.basis import Part, basis_of
from deepcontext.profiler.summaries.lines import UserLines

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from deepcontext.profiler.format.frame import Frame
    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.summaries.slow_steps import LineExcess, SlowSteps, Trend

# Of the time of all steps without waits for a processor; of a single step: times the median.
_LEAST_SHARE: Final = 0.04
_OUTLIER: Final = 10.0
_OF_OUTLIER: Final = 0.6
# A line is named where it has this part of what all lines have more, and a period where its steps have this
# part of it.
_MOST_OF: Final = 0.4
# A slow start: how many steps it has, and what it costs.
_FEWEST_AT_START: Final = 10
# A trend: less is what any machine does in the second or two that such steps take.
_LEAST_OF_TREND_NS: Final = 100_000_000
_LEAST_AT_START_NS: Final = 500_000_000
_NAMED: Final = 4


def find(profile: Profile) -> Iterator[Cause]:
    """Return what makes some steps slower than others."""
    if basis_of(profile).part is not Part.STEADY or profile is not basis_of(profile).profile:
        return
    trend = summary.trend(profile)
    is_trend = trend is not None and _is_trend(profile, trend)
    if trend is not None and is_trend:
        key = "steps_get_slower" if trend.last_ns > trend.first_ns else "steps_get_faster"
        yield _of_trend(profile, key, trend)
    start = summary.slow_start(profile)
    if start is not None and not is_trend and _is_slow_start(profile, start):
        yield _of_trend(profile, "first_steps_slow", start)
    found = summary.slow_steps(profile)
    # Steps that become slower are slow against the median in the end.
    if found is not None and found.lines and not is_trend:
        yield from _slow(profile, found)


def _slow(profile: Profile, found: SlowSteps) -> Iterator[Cause]:
    excess = sum(each.excess_ns for each in found.lines)
    top = found.lines[0]
    if top.excess_ns < _MOST_OF * excess or not found.slowest:
        return
    regular = found.regular
    slowest = found.slowest[0]
    is_outlier = (
        slowest.work_ns >= _OUTLIER * found.work_ns
        and top.excess_ns >= _OF_OUTLIER * slowest.work_ns
    )
    if excess < _LEAST_SHARE * summary.without_waits(profile) and not is_outlier:
        return
    # A single step that has most of what the steps of a period have is in it by chance.
    longest = max((found.excess_ns(each) for each in regular), default=0)
    is_regular = found.excess_ns(*regular) >= max(_MOST_OF * excess, 2 * longest)
    steps = regular if is_regular else found.slowest
    numbers = sorted(each.number for each in steps)
    yield Cause(
        key="slow_steps_regular" if is_regular else "slow_steps",
        nodes=_nodes(profile, top.frame, SLOW_STEP_TIME_NS.name),
        frame=top.frame,
        metric=ELAPSED,
        value=excess,
        whole=profile.run.wall_ns,
        words={
            "period": found.period,
            "which": _which(numbers, found.steps),
            "slow": _time(sum(each.duration_ns for each in steps) / len(steps)),
            "typical": _time(found.typical_ns),
        },
        evidence={
            "steps": ", ".join(map(str, numbers[:_NAMED])),
            "slowest_step": slowest.number,
            "slowest_ns": slowest.duration_ns,
            "median_ns": found.typical_ns,
        },
    )


def _which(numbers: Sequence[int], of: int) -> str:
    """Return ``"step 171"``, or ``"3 of 300 steps (12, 85, 171)"``."""
    if len(numbers) == 1:
        return f"step {numbers[0]}"
    more = ", ..." if len(numbers) > _NAMED else ""
    return f"{len(numbers)} of {of} steps ({', '.join(map(str, numbers[:_NAMED]))}{more})"


def _is_trend(profile: Profile, found: Trend) -> bool:
    least = max(_LEAST_SHARE * summary.without_waits(profile), _LEAST_OF_TREND_NS)
    return _has_line(found.lines) and found.lines[0].excess_ns >= least


def _is_slow_start(profile: Profile, found: Trend) -> bool:
    least = max(_LEAST_SHARE * summary.without_waits(profile), _LEAST_AT_START_NS)
    return (
        found.steps >= _FEWEST_AT_START
        and _has_line(found.lines)
        and found.lines[0].excess_ns >= least
    )


def _has_line(lines: Sequence[LineExcess]) -> bool:
    """Return whether a line has most of what all have more: other programs make all lines slower."""
    more = sum(each.excess_ns for each in lines if each.excess_ns > 0)
    return bool(lines) and lines[0].excess_ns > _MOST_OF * more > 0


def _of_trend(profile: Profile, key: str, found: Trend) -> Cause:
    frame, excess = found.lines[0].frame, sum(max(each.excess_ns, 0) for each in found.lines)
    return Cause(
        key=key,
        nodes=_nodes(profile, frame, ELAPSED_TIME_NS.name),
        frame=frame,
        metric=ELAPSED,
        value=excess,
        whole=max(profile.run.wall_ns, excess),
        words={"first": _time(found.first_ns), "last": _time(found.last_ns), "steps": found.steps},
        evidence={"first_ns": round(found.first_ns), "last_ns": round(found.last_ns)},
    )


def _nodes(profile: Profile, frame: Frame, metric: str) -> tuple[int, ...]:
    """Return the nodes of a line, the costliest first."""
    lines = UserLines.of(profile)
    frames = [profile.frames[int(each)] for each in lines.frame]
    value = exclusive_or_zeros(basis_of(profile).whole, metric)
    nodes = np.flatnonzero((lines.of_node == frames.index(frame)) & (value > 0))
    return tuple(nodes[np.argsort(-value[nodes], kind="stable")].tolist())


def _time(ns: float) -> str:
    return f"{ns / 1e6:.3g} ms" if ns < 1e9 else f"{ns / 1e9:.3g} s"  # noqa: PLR2004  a second
