"""Functions that build the same kind of table in each call: masks, positions, windows.

A table is told by its operators: the function makes a sequence (`arange`, `tril`, ...), computes on it, and
calls nothing that reads a model's weights or data. Does not see values: a table may differ from call to
call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deepcontext.analyzers.finding import Finding, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.analyzers.shared.called_operators import called_by_user
from deepcontext.analyzers.shared.operator_names import COPIES, JOINS, POINTWISE
from deepcontext.profiler.format.frame import FrameKind, Phase
from deepcontext.profiler.format.metric import CALL_DURATION_NS, HOST_TIME_NS
from deepcontext.profiler.model.metric_values import counts_or_zeros, total
from deepcontext.profiler.model.query import Query

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

_LEAST_SHARE: Final = 0.08
_LEAST_CALLS: Final = 20
_SEQUENCES: Final = frozenset(
    f"aten::{name}"
    for name in (
        "arange",
        "linspace",
        "logspace",
        "eye",
        "tril",
        "triu",
        "tril_",
        "triu_",
        "tril_indices",
        "triu_indices",
        "meshgrid",
        "hann_window",
        "hamming_window",
    )
)
_OTHERS: Final = frozenset(
    f"aten::{name}"
    for name in (
        "ones",
        "zeros",
        "full",
        "empty",
        "ones_like",
        "zeros_like",
        "full_like",
        "fill_",
        "zero_",
        "scalar_tensor",
        "masked_fill",
        "masked_fill_",
        "outer",
        "float",
        "view",
        "reshape",
        "flatten",
        "unsqueeze",
        "squeeze",
        "transpose",
        "permute",
        "t",
        "expand",
        "repeat",
        "repeat_interleave",
        "slice",
        "select",
        "as_strided",
        "alias",
        "detach",
        "detach_",
        "lift_fresh",
        "unbind",
        "chunk",
        "split",
        "lt",
        "le",
        "gt",
        "ge",
        "eq",
        "ne",
        "logical_not",
        "logical_and",
        "logical_or",
        "bitwise_not",
        "bitwise_and",
        "bitwise_or",
        "sin",
        "cos",
        "log",
        "log2",
        "cumsum",
        "broadcast_tensors",
    )
)
_OF_TABLES: Final = _SEQUENCES | _OTHERS | POINTWISE | COPIES | JOINS


def rebuilt_tables(profile: Profile, is_user: source_locations.Mask) -> list[Finding]:
    """Return a finding for each function that spends much time on building a table again and again."""
    return profile.once(rebuilt_tables, lambda: _rebuilt_tables(profile, is_user))


def _rebuilt_tables(profile: Profile, is_user: source_locations.Mask) -> list[Finding]:
    operators = source_locations.without(
        Query(profile).kind(FrameKind.OPERATOR), source_locations.compiling(profile)
    )
    operators = source_locations.apart(source_locations.outermost(operators))
    operators = Query(profile, operators.mask() & (profile.tree.phase != Phase.BACKWARD))
    is_called = called_by_user(profile)
    # Through a framework's function, a call is another function's business (an embedding's, a layer's).
    strangers = Query(profile, operators.mask() & ~is_called)
    foreign = {
        (each.frame.file, each.frame.name)
        for each in source_locations.by_function(strangers, HOST_TIME_NS.name, is_user=is_user)
        if each.frame
    }
    whole = total(profile, HOST_TIME_NS.name)
    found = []
    for location in source_locations.by_function(
        Query(profile, operators.mask() & is_called),
        HOST_TIME_NS.name,
        _LEAST_SHARE * whole,
        is_user,
    ):
        frame = location.frame
        if frame is None or (frame.file, frame.name) in foreign:
            continue
        if _is_table(profile, location):
            found.append(_finding(profile, location, whole))
    return found


def _is_table(profile: Profile, location: source_locations.Location) -> bool:
    names = [source_locations.base_name(profile.frame(node).name) for node in location.nodes]
    if _SEQUENCES.isdisjoint(names) or not _OF_TABLES.issuperset(names):
        return False
    calls = counts_or_zeros(profile, CALL_DURATION_NS.name)[list(location.nodes)]
    return int(calls.max()) >= _LEAST_CALLS


def _finding(profile: Profile, location: source_locations.Location, whole: int) -> Finding:
    share = location.value / whole
    names = dict.fromkeys(
        source_locations.base_name(profile.frame(node).name) for node in location.nodes
    )
    return Finding(
        id="kernel_fusion",
        severity=Severity.of_share(share),
        title=(
            f"a table is built again in each call at "
            f"{source_locations.location_text(profile, location.frame)}, {share:.0%} of the time in "
            "operators"
        ),
        nodes=location.nodes[:8],
        evidence={
            "table_ns": location.value,
            "table_share": share,
            "calls_count": location.count,
            "operators": ", ".join(list(names)[:6]),
        },
        gain=source_locations.bound(
            profile, HOST_TIME_NS.name, location.value, "the table is there when it is needed"
        ),
        advice=(
            "build it once: in __init__ with register_buffer, for the longest input, and take a slice; or "
            "put functools.cache on the function, if its arguments are numbers"
        ),
        misleads="the table depends on data, so that it differs from call to call",
    )
