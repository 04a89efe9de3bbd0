"""Optimizers that update one parameter after the other, where one operator would update many."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.finding import Finding, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.analyzers.shared.operator_names import ACCUMULATE_GRAD
from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.format.metric import CALL_DURATION_NS, HOST_TIME_NS
from deepcontext.profiler.model.metric_values import counts_or_zeros, total
from deepcontext.profiler.model.query import Query
from deepcontext.profiler.summaries.steps import STEP_SCOPE

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

_HOST: Final = HOST_TIME_NS.name
_LEAST_SHARE: Final = 0.15
# A step of a foreach or fused optimizer calls a dozen operators for any number of parameters; Adam
# calls about ten for each parameter, so this limit is a model of ten parameters.
_LEAST_CALLS_A_STEP: Final = 100
# Source: https://docs.pytorch.org/docs/2.13/optim.html#algorithms
_WITH_FUSED: Final = frozenset({"Adagrad", "Adam", "AdamW", "SGD"})
# Longer operators mostly compute. Fusing them saves passes over memory: with parameters of 512 x 512 and
# 1000 x 1000 on a processor, Adam and AdamW were 2.5 to 4.8 times as fast, and SGD with momentum 1.4 times.
_MOST_SMALL_NS: Final = 30_000
_SAVED_OF_LARGE: Final = {"Adam": 0.6, "AdamW": 0.6, "Adagrad": 0.3, "SGD": 0.3}
_WITHOUT_FOREACH: Final = frozenset({"LBFGS", "SparseAdam"})


def stepwise_optimizers(profile: Profile) -> list[Finding]:
    """Report optimizers whose steps call operators for each parameter."""
    scopes = source_locations.scopes(profile, STEP_SCOPE)
    whole = total(profile, _HOST)
    found = []
    for scope in scopes:
        # A closure passed to the step is no part of the optimizer.
        inside = Query(profile, _subtree(profile, scope.id)).phase("optimizer")
        value = round(_share_of_gradients(profile) * inside.total(_HOST))
        calls = _calls(profile, scope.id)
        if value / whole < _LEAST_SHARE or not calls:  # most programs, at little cost
            continue
        below = source_locations.outermost(inside.kind(FrameKind.OPERATOR))
        names = {
            source_locations.base_name(profile.frame(node).name) for node in below.nodes().tolist()
        }
        a_step = int(profile.counts(CALL_DURATION_NS.name)[below.nodes()].sum()) / calls
        is_fused = any(name.startswith(("aten::_foreach_", "aten::_fused_")) for name in names)
        if is_fused or a_step < _LEAST_CALLS_A_STEP:
            continue
        name = _optimizer_name(profile, scope.id)
        is_large = value > _MOST_SMALL_NS * a_step * calls
        saved = round(value * _SAVED_OF_LARGE.get(name, 0.0)) if is_large else value
        if saved / whole >= _LEAST_SHARE:
            found.append(_optimizer_finding(profile, scope.id, saved, a_step, is_large=is_large))
    return found


def _share_of_gradients(profile: Profile) -> float:
    """Return which share of the gradients that were filled with zeros got a gradient afterwards, 0 to 1.

    The others are updated for nothing; `settings` says so. 1 where gradients are dropped.
    """
    zeros = source_locations.scopes(profile, source_locations.ZERO_GRAD_SCOPE)
    filled = source_locations.operators(profile, {"aten::zero_"}).under(zeros).nodes()
    added = source_locations.operators(profile, {ACCUMULATE_GRAD}).nodes()
    calls = counts_or_zeros(profile, CALL_DURATION_NS.name)
    of_zeros, of_gradients = int(calls[filled].sum()), int(calls[added].sum())
    return min(1.0, of_gradients / of_zeros) if of_zeros else 1.0


def _optimizer_name(profile: Profile, node: int) -> str:
    return profile.frame(node).name.removeprefix(STEP_SCOPE).removesuffix(".step")


def _optimizer_finding(
    profile: Profile, node: int, value: int, a_step: float, *, is_large: bool
) -> Finding:
    name = _optimizer_name(profile, node)
    share = value / total(profile, _HOST)
    small = (
        "operators a step, whose passes over memory cost" if is_large else "small operators a step,"
    )
    return Finding(
        id="kernel_fusion",
        severity=Severity.of_share(share),
        title=f"{name} calls {a_step:.0f} {small} {share:.0%} of the time in operators",
        nodes=(node,),
        evidence={
            "optimizer_ns": value,
            "optimizer_share": share,
            "operators_per_step": round(a_step, 1),
            "steps_count": _calls(profile, node),
        },
        gain=source_locations.bound(
            profile,
            _HOST,
            value,
            "each tensor is read and written once" if is_large else "the optimizer costs nothing",
        ),
        advice=_optimizer_advice(name),
        misleads=(
            "the parameters are large and on a GPU, so that the host is ahead of it; foreach=True needs "
            "more memory for its temporaries"
        ),
    )


def _optimizer_advice(name: str) -> str:
    if name in _WITHOUT_FOREACH:
        return (
            f"torch has no form of {name} that updates all parameters at once: use another "
            "optimizer, or reduce its work in a step (LBFGS: max_iter, history_size)"
        )
    if name in _WITH_FUSED:
        return (
            f"use torch.optim.{name}(..., fused=True), which updates all parameters in a few "
            "operators, on CPUs too"
        )
    return (
        f"give {name} the argument foreach=True, which updates all parameters in a few operators; "
        "an optimizer from another package may have a fused form under another name"
    )


def _subtree(profile: Profile, node: int) -> source_locations.Mask:
    mask = np.zeros(len(profile.tree), np.bool_)
    mask[node : int(profile.tree.subtree_end[node])] = True
    return mask


def _calls(profile: Profile, node: int) -> int:
    return int(counts_or_zeros(profile, CALL_DURATION_NS.name)[node])
