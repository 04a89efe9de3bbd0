"""Matrices of one-hot rows, which are as wide as the number of classes and hold one 1 each.

A product with such a matrix looks rows up, and a loss with it picks one value. Does not look for matrices
that are made in another way than by `one_hot`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.finding import Finding, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.format.metric import HOST_TIME_NS
from deepcontext.profiler.model.metric_values import total
from deepcontext.profiler.model.query import Query
from deepcontext.profiler.model.tree import NO_NODE
from deepcontext.profiler.summaries.lines import nearest_user

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

_LEAST_SHARE: Final = 0.05
_LEAST_CALLS: Final = 5


def one_hots(profile: Profile) -> list[Finding]:
    """Return a finding for each line that spends much time on making one-hot rows."""
    metric = HOST_TIME_NS.name
    made = source_locations.apart(source_locations.operators(profile, {"aten::one_hot"}))
    least = _LEAST_SHARE * total(profile, metric)
    return [
        _finding(profile, location)
        for location in source_locations.by_line(made, metric, least)
        if location.count >= _LEAST_CALLS and location.frame is not None
    ]


def _finding(profile: Profile, location: source_locations.Location) -> Finding:
    where = source_locations.location_text(profile, location.frame)
    value, whole = _line_ns(profile, location), total(profile, HOST_TIME_NS.name)
    return Finding(
        id="copies",
        severity=Severity.of_share(value / whole),
        title=(
            f"one_hot at {where} makes rows that are zero but for one place; its line takes "
            f"{value / whole:.0%} of the time"
        ),
        nodes=location.nodes[:8],
        evidence={
            "copy_ns": location.value,
            "copy_share": location.value / whole,
            "line_ns": value,
            "calls_count": location.count,
        },
        gain=source_locations.bound(profile, HOST_TIME_NS.name, value, "this line costs nothing"),
        advice=(
            "use the indices: torch.nn.functional.embedding(indices, table) or table[indices] instead of "
            "one_hot(indices) @ table; cross_entropy takes indices of classes; gather picks one value of "
            "each row"
        ),
        misleads="the rows are changed afterwards, so that more than one place is not zero",
    )


def _line_ns(profile: Profile, location: source_locations.Location) -> int:
    """Return the time of all operators of the line, with their backward, ns."""
    tree = profile.tree
    line = source_locations.line_numbers(profile)
    owner = nearest_user(profile)
    of_node = np.where(owner == NO_NODE, 0, line[tree.frame[owner]])
    mask = profile.is_kind(FrameKind.OPERATOR) & (of_node == of_node[location.nodes[0]])
    operators = source_locations.outermost(Query(profile, mask))
    return operators.total(HOST_TIME_NS.name, inclusive=True)
