"""Loops over classes that compare the whole of a tensor with each number and count what matches.

Does not judge loops over small operators (`operator_loops.py`): here each pass reads all elements, so that
the work, not the calls, is n times too much.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.finding import Finding, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.analyzers.shared.called_operators import (
    NO_FUNCTION,
    called_by_user,
    functions_of_nodes,
    model_calls,
)
from deepcontext.analyzers.shared.operator_names import COPIES, REDUCTIONS
from deepcontext.analyzers.shared.repeated_work import steps_or_passes
from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.format.metric import CALL_DURATION_NS, HOST_TIME_NS
from deepcontext.profiler.model.grouping import sums
from deepcontext.profiler.model.metric_values import counts_or_zeros, total
from deepcontext.profiler.model.query import Query

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

_COMPARES: Final = frozenset({"aten::eq"})
_LEAST_SHARE: Final = 0.15
_LEAST_PASSES: Final = 8
_COMBINES: Final = frozenset(
    f"aten::{name}"
    for name in [
        "bitwise_and",
        "bitwise_or",
        "bitwise_not",
        "__and__",
        "__or__",
        "logical_and",
        "logical_or",
        "logical_not",
        "ne",
        "add",
        "add_",
        "sub",
        "mul",
        "div",
        "select",
        "slice",
        "item",
        "float",
        "long",
        "clamp",
        "clamp_min",
    ]
)


def masks_of_classes(profile: Profile) -> list[Finding]:
    """Return a finding for each function with such a loop that takes much of the time."""
    whole = total(profile, HOST_TIME_NS.name)
    functions = functions_of_nodes(profile)
    operators = source_locations.outermost(Query(profile, profile.is_kind(FrameKind.OPERATOR)))
    called = source_locations.apart(operators).mask() & called_by_user(profile)
    called &= functions != NO_FUNCTION
    compared = np.flatnonzero(called & source_locations.operators(profile, _COMPARES).mask())
    if not len(compared):
        return []
    runs = max(steps_or_passes(profile) or model_calls(profile), 1)
    calls = counts_or_zeros(profile, CALL_DURATION_NS.name)
    passes = sums(functions[compared], calls[compared], int(functions.max()) + 1)
    found = []
    for function in np.flatnonzero(passes >= _LEAST_PASSES * runs).tolist():
        nodes = np.flatnonzero(called & (functions == function))
        repeated = nodes[2 * calls[nodes] >= calls[nodes].max()]
        names = {source_locations.base_name(profile.frame(node).name) for node in repeated.tolist()}
        spent = int(profile.inclusive(HOST_TIME_NS.name)[repeated].sum())
        counts = not names.isdisjoint(REDUCTIONS)
        if spent >= _LEAST_SHARE * whole and counts and names <= _EXPECTED:
            found.append(_finding(profile, repeated, int(passes[function]) / runs, spent, whole))
    return found


_EXPECTED: Final = _COMPARES | _COMBINES | REDUCTIONS | COPIES


def _finding(
    profile: Profile, nodes: source_locations.Ints, passes: float, spent: int, whole: int
) -> Finding:
    mask = np.zeros(len(profile.tree), np.bool_)
    mask[nodes] = True
    lines = source_locations.by_line(Query(profile, mask), HOST_TIME_NS.name)
    share = spent / whole
    return Finding(
        id="kernel_fusion",
        severity=Severity.of_share(share),
        title=(
            f"{source_locations.location_text(profile, lines[0].frame)} reads whole tensors again for each "
            f"class, {passes:,.0f} comparisons a run of the loop, {share:.0%} of the time in operators"
        ),
        nodes=tuple(node for line in lines for node in line.nodes[:2])[:8],
        evidence={"loop_ns": spent, "loop_share": share, "passes_count": round(passes, 1)},
        gain=source_locations.bound(
            profile, HOST_TIME_NS.name, spent, "one pass over the tensors costs nothing"
        ),
        advice=(
            "count all classes in one pass: torch.bincount(wanted * classes + found, minlength=classes**2) "
            "gives the confusion matrix, whose diagonal and sums have the rest; scatter_add_ or index_add_ "
            "where values are summed"
        ),
        misleads="there are few classes, and the tensors are small",
    )
