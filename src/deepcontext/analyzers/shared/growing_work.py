"""Functions that work on all values so far in each call, so that a run costs the square of its length.

Sizes are known from what operators allocate: after n calls that each add as many values, the largest size is
n times the smallest. Does not judge models and products, which may need all earlier values (attention).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.finding import Finding, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.analyzers.shared.called_operators import NO_FUNCTION, functions_of_nodes
from deepcontext.analyzers.shared.operator_names import DENSE, JOINS
from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.format.metric import HOST_TIME_NS
from deepcontext.profiler.model.grouping import sums
from deepcontext.profiler.model.metric_values import total
from deepcontext.profiler.model.query import Query
from deepcontext.profiler.model.tree import NO_NODE

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

_ALLOCATED: Final = "alloc_bytes"
_LEAST_CALLS: Final = 20
_LEAST_SHARE: Final = 0.25
# How well sizes must match those of values that become more by the same number from call to call.
_TOLERANCE: Final = 0.1


def growing_work(profile: Profile) -> list[Finding]:
    """Return a finding for each function that spends much time on values that grow from call to call."""
    grown = _grown_operators(profile)
    if not grown.any():
        return []
    functions = functions_of_nodes(profile)
    operators = Query(profile, profile.is_kind(FrameKind.OPERATOR))
    called = source_locations.outermost(operators).mask()
    called &= (functions != NO_FUNCTION) & ~profile.tree.below(profile.is_kind(FrameKind.MODULE))
    others = source_locations.operators(profile, DENSE | JOINS).mask()
    working = np.flatnonzero(called & profile.tree.at_or_above(grown))
    working = working[~np.isin(functions[working], functions[called & _above(profile, others)])]
    if not len(working):
        return []
    value = profile.inclusive(HOST_TIME_NS.name)[working]
    spent = sums(functions[working], value, int(functions.max()) + 1)
    least = _LEAST_SHARE * total(profile, HOST_TIME_NS.name)
    return [
        _finding(profile, working[functions[working] == each], int(spent[each]))
        for each in np.flatnonzero(spent >= least).tolist()
    ]


def _above(profile: Profile, mask: source_locations.Mask) -> source_locations.Mask:
    return profile.tree.at_or_above(mask)


def _grown_operators(profile: Profile) -> source_locations.Mask:
    """Return which operators allocate once, twice, ... n times as much in their n calls, shape (nodes,)."""
    tree = profile.tree
    found = np.zeros(len(tree), np.bool_)
    rows = profile.metrics.get(_ALLOCATED)
    if rows is None or rows.minimum is None or rows.maximum is None or rows.m2 is None:
        return found
    # Compared as integers first, because few operators of a program grow.
    uneven = np.flatnonzero((rows.count >= _LEAST_CALLS) & (rows.maximum > rows.minimum))
    low, high = (each[uneven].astype(np.float64) for each in (rows.minimum, rows.maximum))
    count = rows.count[uneven].astype(np.float64)
    mean, deviation = rows.total[uneven] / count, np.sqrt(rows.m2[uneven] / count)
    grows = (low > 0) & (np.abs(high - low * count) <= _TOLERANCE * high)
    # Source: the uniform distribution, mean (a + b) / 2 and deviation (b - a) / sqrt(12).
    grows &= np.abs(mean - (low + high) / 2) <= _TOLERANCE * mean
    grows &= np.abs(deviation - (high - low) / np.sqrt(12)) <= _TOLERANCE * deviation
    if not grows.any():
        return found
    operator = tree.nearest(profile.is_kind(FrameKind.OPERATOR))[rows.node[uneven[grows]]]
    found[operator[operator != NO_NODE]] = True
    return found


def _finding(profile: Profile, nodes: source_locations.Ints, spent: int) -> Finding:
    mask = np.zeros(len(profile.tree), np.bool_)
    mask[nodes] = True
    location = source_locations.by_line(Query(profile, mask), HOST_TIME_NS.name)[0]
    share = spent / total(profile, HOST_TIME_NS.name)
    return Finding(
        id="model_calls",
        severity=Severity.of_share(share),
        title=(
            f"{source_locations.location_text(profile, location.frame)} works on all values so far in each "
            f"of {location.count // len(location.nodes):,} calls: {share:.0%} of the time in operators"
        ),
        nodes=location.nodes[:8],
        evidence={"host_time_ns": spent, "time_share": share},
        gain=source_locations.bound(
            profile, HOST_TIME_NS.name, spent, "a call that adds its own values costs nothing"
        ),
        advice=(
            "compute the result once after the loop, or every n-th time it is shown; or keep what each call "
            "adds (sums, counts, a histogram) instead of sorting and summing all values again"
        ),
        misleads="each result is used, and cannot be computed from the last one",
    )
