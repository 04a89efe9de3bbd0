"""Caches of a decoder that are copied in a new order for each token, as in a beam search.

Does not judge lookups of rows that a model computes with (`hotspot.py`). Invariant: the program trains
nothing, and each pick of the best tokens is followed by copies of several tensors on one line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.finding import Finding, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.analyzers.shared.called_operators import called_by_user
from deepcontext.profiler.format.frame import Phase
from deepcontext.profiler.format.metric import CALL_DURATION_NS, HOST_TIME_NS
from deepcontext.profiler.model.metric_values import counts_or_zeros, total
from deepcontext.profiler.model.query import Query

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

_LEAST_SHARE: Final = 0.20
_LEAST_TOKENS: Final = 10
_LEAST_TENSORS: Final = 2
_PICKS: Final = frozenset({"aten::topk", "aten::multinomial"})
_REORDERS: Final = frozenset({"aten::index_select", "aten::index", "aten::gather"})


def reordered_caches(profile: Profile) -> list[Finding]:
    """Return a finding for each line that copies caches in a new order and takes much of the time."""
    if (profile.tree.phase == Phase.BACKWARD).any() or CALL_DURATION_NS.name not in profile.metrics:
        return []
    calls = counts_or_zeros(profile, CALL_DURATION_NS.name)
    called = called_by_user(profile)
    picked = int(calls[source_locations.operators(profile, _PICKS).mask() & called].sum())
    if picked < _LEAST_TOKENS:
        return []
    whole = total(profile, HOST_TIME_NS.name)
    copied = Query(profile, source_locations.operators(profile, _REORDERS).mask() & called)
    return [
        _finding(profile, location, location.count // picked, whole)
        for location in source_locations.by_line(copied, HOST_TIME_NS.name, _LEAST_SHARE * whole)
        # The first tokens may need no new order, or the last.
        if location.count >= _LEAST_TENSORS * picked
        and np.isclose(location.count / picked, round(location.count / picked), atol=0.1)
    ]


def _finding(
    profile: Profile, location: source_locations.Location, tensors: int, whole: int
) -> Finding:
    share = location.value / whole
    return Finding(
        id="copies",
        severity=Severity.of_share(share),
        title=(
            f"{tensors} tensors are copied in a new order after each pick of tokens at "
            f"{source_locations.location_text(profile, location.frame)}, {share:.0%} of the time in operators"
        ),
        nodes=location.nodes[:8],
        evidence={
            "copy_ns": location.value,
            "copy_share": share,
            "calls_count": location.count,
            "tensors_per_pick": tensors,
        },
        gain=source_locations.bound_of_copies(profile, HOST_TIME_NS.name, location.value),
        advice=(
            "reorder only what differs between the beams of one input (keys and values of the input itself "
            "are the same for all: leave them where they are, or expand them), skip the copy where the order "
            "stays as it is, or keep the order as indices"
        ),
        misleads="all copied tensors differ between beams, and the attention cannot read through indices",
    )
