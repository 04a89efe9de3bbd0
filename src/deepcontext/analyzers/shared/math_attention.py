"""Attention that PyTorch computes as products and a softmax, although the program calls the fused operator.

Does not judge attention written by hand (`kernel_fusion.py`). Invariant: short calls are no finding, because
there the fused kernel saves little. Dropout in attention is part of the model, so it is a fact, no warning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.finding import Finding, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.profiler.format.metric import HOST_TIME_NS
from deepcontext.profiler.model.metric_values import total
from deepcontext.profiler.model.query import Query

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

# Source: aten/src/ATen/native/transformers/attention.cpp, `scaled_dot_product_attention`.
_MATH: Final = frozenset({
    "aten::_scaled_dot_product_attention_math",
    "aten::_scaled_dot_product_attention_math_for_mps",
})
_DROPS: Final = frozenset({"aten::dropout", "aten::native_dropout"})
_LEAST_SHARE: Final = 0.15
_LEAST_CALL_NS: Final = 200_000


def math_attention(profile: Profile) -> list[Finding]:
    """Return a finding for the function whose attention takes most time in PyTorch's own formula."""
    whole = total(profile, HOST_TIME_NS.name)
    attention = source_locations.operators(profile, _MATH)
    locations = source_locations.by_function(
        attention, HOST_TIME_NS.name, least=_LEAST_SHARE * whole
    )
    return [
        _finding(profile, location, whole)
        for location in locations
        if location.value >= _LEAST_CALL_NS * location.count
    ]


def _has_dropout(profile: Profile, location: source_locations.Location) -> bool:
    mask = np.zeros(len(profile.tree), np.bool_)
    mask[list(location.nodes)] = True
    dropped = source_locations.operators(profile, _DROPS).under(Query(profile, mask))
    return bool(dropped.count())


def _finding(profile: Profile, location: source_locations.Location, whole: int) -> Finding:
    share = location.value / whole
    has_dropout = _has_dropout(profile, location)
    return Finding(
        id="settings",
        severity=Severity.INFO if has_dropout else Severity.of_share(share),
        title=(
            "scaled_dot_product_attention runs without its fused kernel"
            f"{', which has no dropout on a processor,' if has_dropout else ''} at "
            f"{source_locations.location_text(profile, location.frame)}, {share:.0%} of the time in operators"
        ),
        nodes=location.nodes[:8],
        evidence={
            "attention_ns": location.value,
            "attention_share": share,
            "calls_count": location.count,
        },
        gain=source_locations.bound(
            profile, HOST_TIME_NS.name, location.value, "the fused attention costs nothing"
        ),
        advice=(
            "allow the fused backend: no sdpa_kernel(SDPBackend.MATH) and no enable_flash_sdp(False) around "
            "the run; on a processor it also needs dropout_p=0, a mask of two or four dimensions and without "
            "gradients, queries, keys and values of one type with equal sizes of heads, and a last dimension "
            "that is contiguous"
        ),
        misleads="the results must be the same bit for bit as those of the formula",
    )
