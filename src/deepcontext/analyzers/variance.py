"""Variance: calls on one path that mostly are quick and sometimes very slow.

The slowest call is left out before judging: it is the first one, in nearly every program.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers import places
from deepcontext.analyzers.base import Analyzer
from deepcontext.analyzers.finding import Finding, Severity
from deepcontext.profiler.frame import FrameKind
from deepcontext.profiler.metric import CALL_DURATION_NS, CPU_TIME_NS
from deepcontext.profiler.tree import NO_NODE

if TYPE_CHECKING:
    from deepcontext.profiler.metric import MetricRows
    from deepcontext.profiler.profile import Profile

_LEAST_CALLS: Final = 20
# Workers wait for a core as operators do; a loader without workers may wait for a disk or a network.
_LOADS_HERE: Final = f"{places.LOADER_SCOPE}_SingleProcess"
_LEAST_SHARE: Final = 0.15
# Standard deviation by mean. One call of ten at ten times the rest has 1.4.
_LEAST_SPREAD: Final = 1.25
# A call that loses its core waits for a few slices of the scheduler, some ms each: that is no fault of
# the program, so less than this is not judged.
_LEAST_DEVIATION_NS: Final = 10_000_000


def _find(profile: Profile) -> list[Finding]:
    whole = places.judged_total(profile, CPU_TIME_NS.name)
    rows = profile.metrics.get(CALL_DURATION_NS.name)
    if not whole or rows is None or rows.m2 is None or rows.maximum is None or rows.minimum is None:
        return []
    deviation, mean = _without_slowest(rows)
    spread = deviation / np.maximum(mean, 1.0)
    uneven = (rows.count >= _LEAST_CALLS) & (spread >= _LEAST_SPREAD)
    uneven &= deviation >= _LEAST_DEVIATION_NS
    uneven &= rows.total >= _LEAST_SHARE * whole
    uneven &= ~_while_compiling(profile)[rows.node]
    if places.crowded_ns(profile):
        is_loading = places.scopes(profile, _LOADS_HERE).mask()[rows.node]
        uneven &= is_loading | (_excess(rows) > _waited_ns(profile))
    found, covered = [], np.zeros(len(profile.tree), np.bool_)
    # The innermost path that is uneven is the one to look at: its callers are uneven through it.
    for row in np.flatnonzero(uneven)[::-1].tolist():
        node = int(rows.node[row])
        if not covered[node]:
            found.append(_finding(profile, rows, row, float(spread[row])))
        covered[list(profile.tree.path(node))] = True
    return found


def _waited_ns(profile: Profile) -> int:
    """Return the time in which the process had no processor, whatever it waited for."""
    return profile.run.wall_ns - profile.run.cpu_user_ns - profile.run.cpu_system_ns


def _excess(rows: MetricRows) -> places.Ints:
    """Return what the calls took beyond the shortest, ns, shape (rows,)."""
    assert rows.minimum is not None  # noqa: S101  asked by the caller
    return np.asarray(rows.total - rows.count * rows.minimum)


def _without_slowest(rows: MetricRows) -> tuple[places.Floats, places.Floats]:
    """Return standard deviation and mean of all calls but the slowest, ns, shape (rows,) each."""
    assert rows.m2 is not None  # noqa: S101  asked by the caller
    assert rows.maximum is not None  # noqa: S101
    count = rows.count.astype(np.float64)
    mean = rows.total / np.maximum(count, 1)
    others = np.maximum(count - 1, 1)
    # Source: Welford's update, run backwards.
    mean_without = (rows.total - rows.maximum) / others
    m2 = rows.m2 - (rows.maximum - mean) * (rows.maximum - mean_without)
    deviation = np.sqrt(np.maximum(m2, 0.0) / np.maximum(count - 2, 1))
    return deviation, mean_without


def _while_compiling(profile: Profile) -> places.Mask:
    marked = places.compiling(profile).mask()
    above = profile.tree.inclusive(marked.astype(np.int64)) > 0
    return np.asarray(above | profile.tree.below(marked))


def _finding(profile: Profile, rows: MetricRows, row: int, spread: float) -> Finding:
    assert rows.minimum is not None  # noqa: S101  asked by the caller
    assert rows.maximum is not None  # noqa: S101
    node, count, total = int(rows.node[row]), int(rows.count[row]), int(rows.total[row])
    frame = profile.frame(node)
    owner = places.climb(profile, np.array([node]), places.own_frames(profile))
    where = places.place_text(
        profile, None if owner[0] == NO_NODE else profile.frame(int(owner[0]))
    )
    share = total / places.total(profile, CPU_TIME_NS.name)
    kind = "loading" if frame.kind is FrameKind.SCOPE and "DataLoader" in frame.name else "call"
    return Finding(
        id="variance",
        severity=Severity.of_share(share / 2),
        title=f"'{places.base_name(frame.name)}' at {where} is sometimes much slower than usual",
        nodes=(node,),
        evidence={
            "calls_count": count,
            "mean_ns": total // count,
            "minimum_ns": int(rows.minimum[row]),
            "maximum_ns": int(rows.maximum[row]),
            "spread_by_mean": round(spread, 2),
            "time_share": share,
        },
        gain=places.bound(
            profile,
            CPU_TIME_NS.name,
            total - count * int(rows.minimum[row]),
            "every call takes as long as the shortest",
        ),
        advice=(
            "some batches are dearer to make than others: prepare them ahead, or with workers and "
            "a larger prefetch_factor"
            if kind == "loading"
            else "find what differs in the slow calls: sizes of the inputs (record again with "
            "--shapes), work done every n-th step, other programs on the same cores"
        ),
        misleads=(
            "the machine was busy with other programs; calls of different sizes share the path"
        ),
    )


ANALYZER = Analyzer("variance", "are calls on one path sometimes much slower?", _find)
