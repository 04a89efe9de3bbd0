"""Losses over dense targets that a function makes of classes, as for smoothed labels.

Recognised by a scatter into a filled tensor and a loss over a tensor of the same size in one function.
Rows of `one_hot` are judged by `one_hots.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.finding import Finding, Severity
from deepcontext.analyzers.shared import allocations, source_locations
from deepcontext.analyzers.shared.called_operators import NO_FUNCTION, functions_of_nodes
from deepcontext.profiler.format.frame import FrameKind, Phase
from deepcontext.profiler.format.metric import HOST_TIME_NS
from deepcontext.profiler.model.metric_values import total
from deepcontext.profiler.model.query import Query

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

_LEAST_SHARE: Final = 0.1
_FILLS: Final = frozenset(
    f"aten::{name}"
    for name in ("zeros", "zeros_like", "full", "full_like", "new_zeros", "new_full", "empty_like")
)
# A copy is a filled tensor only where the function fills it: others keep values of their own.
_COPIES: Final = frozenset({"aten::clone"})
_WRITES: Final = frozenset({"aten::fill_"})
_SCATTERS: Final = frozenset({"aten::scatter_", "aten::scatter"})
# Products with the logarithms of probabilities are the same loss written out.
_PRODUCTS: Final = frozenset({"aten::mul", "aten::mul_"})


def dense_targets(profile: Profile) -> list[Finding]:
    """Return a finding for each function that makes dense targets of classes for its loss."""
    return profile.once(dense_targets, lambda: _dense_targets(profile))


def _dense_targets(profile: Profile) -> list[Finding]:
    metric = HOST_TIME_NS.name
    if allocations.ALLOCATED not in profile.metrics:
        return []
    functions = functions_of_nodes(profile)
    forward = (profile.tree.phase != Phase.BACKWARD) & (functions != NO_FUNCTION)

    def called(names: set[str] | frozenset[str]) -> source_locations.Mask:
        return np.asarray(source_locations.operators(profile, names).mask() & forward)

    scatters, divergences = called(_SCATTERS), called({"aten::kl_div"})
    logarithms = called({"aten::log_softmax"})
    judged = np.unique(functions[scatters])
    judged = judged[np.isin(judged, functions[divergences | logarithms])]
    if not len(judged):
        return []
    made = allocations.largest_made(profile)
    fills, products = called(_FILLS), called(_PRODUCTS)
    copies, probabilities = called(_COPIES), called({"aten::softmax"})
    is_operator = profile.is_kind(FrameKind.OPERATOR)
    writes = called(_WRITES) & ~is_operator[profile.tree.parent.clip(0)]
    chosen = np.zeros(len(profile.tree), np.bool_)
    for function in judged.tolist():
        own = functions == function
        filled = own & (fills | copies if (own & writes).any() else fills)
        losses = own & divergences
        if not losses.any():
            losses = own & products & np.isin(made, made[own & logarithms])
        # Probabilities of a teacher are no targets made of classes, whatever else is scattered.
        losses &= ~np.isin(made, made[own & probabilities])
        losses &= np.isin(made, made[filled]) & (made > 0)
        if losses.any():
            chosen |= losses | (own & (scatters | writes)) | (filled & np.isin(made, made[losses]))
    least = _LEAST_SHARE * total(profile, metric)
    return [
        _finding(profile, location)
        for location in source_locations.by_function(Query(profile, chosen), metric, least)
    ]


def _finding(profile: Profile, location: source_locations.Location) -> Finding:
    share = location.value / total(profile, HOST_TIME_NS.name)
    where = source_locations.location_text(profile, location.frame)
    return Finding(
        id="cheaper_operator",
        severity=Severity.of_share(share),
        title=(
            f"{where} makes a dense target of classes and computes a loss over all of it, {share:.0%} of the "
            "time in operators"
        ),
        nodes=location.nodes[:8],
        evidence={
            "host_time_ns": location.value,
            "time_share": share,
            "calls_count": location.count,
        },
        gain=source_locations.bound(
            profile,
            HOST_TIME_NS.name,
            location.value,
            "a loss with classes costs nothing beside softmax",
        ),
        advice=(
            "give the loss the classes: torch.nn.functional.cross_entropy(logits, classes, "
            "label_smoothing=0.1, ignore_index=padding) smooths them without a target of the size of the "
            "logits, and computes log_softmax itself; gather picks one value of each row"
        ),
        misleads=(
            "several classes of a row have weights of their own, as in distillation from the best few "
            "classes"
        ),
    )
