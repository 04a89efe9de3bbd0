"""Settings: a mode that is meant for another part of a program, or for a search for errors, costs time.

Recognises the detection of anomalies, gradients that are filled with zeros, gradients that no optimizer uses,
outputs that no loss uses, dropout and parametrizations in modules that no backward follows, more threads than
processors, attention without its fused kernel, and JAX's checks for NaN. Invariant: each is told by operators
or functions that run only in that mode, or by a setting that was read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.base import Analyzer
from deepcontext.analyzers.finding import Finding, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.analyzers.shared.backward_passes import backward_line
from deepcontext.analyzers.shared.jax_checks import checks_left_on
from deepcontext.analyzers.shared.math_attention import math_attention
from deepcontext.analyzers.shared.parametrizations import recomputed_weights
from deepcontext.analyzers.shared.thread_counts import threads
from deepcontext.analyzers.shared.unused_gradients import unused_gradients
from deepcontext.analyzers.shared.unused_outputs import unused_outputs
from deepcontext.profiler.format.frame import FrameKind, Phase
from deepcontext.profiler.format.metric import CALL_DURATION_NS, HOST_TIME_NS
from deepcontext.profiler.model.metric_values import counts_or_zeros, total
from deepcontext.profiler.model.query import Query

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

_LEAST_SHARE: Final = 0.05
_LEAST_DROPOUT_SHARE: Final = 0.10
_LEAST_CALLS: Final = 5
# Source: torch/csrc/autograd/engine.cpp, `validate_outputs` and the check for NaN in `call_function`: for
# each gradient isnan, any and item.
_CHECKS: Final = frozenset({"aten::isnan", "aten::_is_any_true", "aten::item"})
_LEAST_CHECKED: Final = 0.5


def _find(profile: Profile) -> list[Finding]:
    if not source_locations.judged_total(profile, HOST_TIME_NS.name):
        return []
    return [
        *_anomalies(profile),
        *_zeros(profile),
        *unused_gradients(profile),
        *unused_outputs(profile),
        *_dropout(profile),
        *recomputed_weights(profile),
        *threads(profile),
        *math_attention(profile),
        *checks_left_on(profile),
    ]


def _anomalies(profile: Profile) -> list[Finding]:
    """Report a backward that looks into every gradient for NaN."""
    tree = profile.tree
    is_backward = tree.phase == Phase.BACKWARD
    checks = source_locations.operators(profile, _CHECKS)
    checks = source_locations.outermost(Query(profile, checks.mask() & is_backward))
    calls = counts_or_zeros(profile, CALL_DURATION_NS.name)
    looked = source_locations.operators(profile, {"aten::isnan"}).mask() & checks.mask()
    nodes = source_locations.operators(profile, lambda name: name.endswith("Backward0")).mask()
    passes = int(calls[nodes & is_backward].sum())
    if not passes or calls[looked].sum() < _LEAST_CHECKED * passes:
        return []
    value = checks.total(HOST_TIME_NS.name, inclusive=True)
    saved, whole = value + _forward_ns(profile), total(profile, HOST_TIME_NS.name)
    share = saved / whole
    if share < _LEAST_SHARE:
        return []
    caller = _backward_line(profile, checks)
    return [
        Finding(
            id="settings",
            severity=Severity.of_share(share),
            title=(
                f"the detection of anomalies is on: the backward at {caller[0]} looks for NaN in each "
                f"gradient, and the forward keeps the stack of each operator: up to {share:.0%} of the "
                "time in operators"
            ),
            nodes=caller[1],
            evidence={
                "check_ns": value,
                "check_share": value / whole,
                "checks_count": int(calls[looked].sum()),
            },
            gain=source_locations.bound(
                profile,
                HOST_TIME_NS.name,
                saved,
                "the checks cost nothing, and the forward does nothing but keep the Python stacks of its "
                "operators, which are part of their time",
            ),
            advice=(
                "switch it off except when searching for a NaN: no torch.autograd.set_detect_anomaly(True), "
                "no detect_anomaly=True in a trainer"
            ),
            misleads="the program is being searched for a NaN right now",
        )
    ]


def _forward_ns(profile: Profile) -> int:
    is_forward = profile.tree.phase == Phase.FORWARD
    return int(profile.exclusive(HOST_TIME_NS.name)[is_forward].sum())


def _backward_line(profile: Profile, checks: Query) -> tuple[str, tuple[int, ...]]:
    """Return the line that runs most of the backward, and nodes below it."""
    line = backward_line(profile) or source_locations.by_line(checks, HOST_TIME_NS.name)[0]
    return source_locations.location_text(profile, line.frame), line.nodes[:8]


def _zeros(profile: Profile) -> list[Finding]:
    """Report gradients that are filled with zeros instead of being dropped."""
    zeros = source_locations.scopes(profile, source_locations.ZERO_GRAD_SCOPE)
    value, whole = zeros.total(HOST_TIME_NS.name, inclusive=True), total(profile, HOST_TIME_NS.name)
    share = value / whole
    filled = source_locations.operators(
        profile, lambda name: name in {"aten::zero_", "aten::_foreach_zero_"}
    ).under(zeros)
    calls = int(counts_or_zeros(profile, CALL_DURATION_NS.name)[zeros.nodes()].sum())
    if share < _LEAST_SHARE or not filled.count() or calls < _LEAST_CALLS:
        return []
    location = source_locations.by_line(zeros, HOST_TIME_NS.name)[0]
    return [
        Finding(
            id="settings",
            severity=Severity.of_share(share),
            title=(
                f"gradients are filled with zeros at "
                f"{source_locations.location_text(profile, location.frame)}, {share:.0%} of the time "
                "in operators"
            ),
            nodes=location.nodes[:8],
            evidence={"zero_ns": value, "zero_share": share, "calls_count": calls},
            gain=source_locations.bound(
                profile,
                HOST_TIME_NS.name,
                3 * value,
                "filling costs nothing, nor adding to the zeros and updating by them",
            ),
            advice="drop the gradients: zero_grad(set_to_none=True), the default since torch 2.0",
            misleads="the program reads .grad of parameters that took no part in a step",
        )
    ]


def _dropout(profile: Profile) -> list[Finding]:
    """Report dropout in modules that run without a backward: in evaluation or inference."""
    tree = profile.tree
    modules = profile.is_kind(FrameKind.MODULE)
    outermost = tree.outermost(modules)
    has_backward = tree.at_or_above(tree.phase == Phase.BACKWARD)
    alone = np.zeros(len(tree), np.bool_)
    alone[outermost[~has_backward[outermost]]] = True
    if alone.any() and has_backward[0] and not has_backward[modules].any():
        return []  # a backward that is not linked to its forward
    drawn = source_locations.operators(profile, {"aten::bernoulli_", "aten::native_dropout"})
    drops = source_locations.nodes_named(
        profile, FrameKind.MODULE, lambda name: name.startswith("Dropout")
    )
    drops = Query(profile, drops.mask() & tree.at_or_below(alone) & _above(profile, drawn))
    value, whole = drops.total(HOST_TIME_NS.name, inclusive=True), total(profile, HOST_TIME_NS.name)
    share = value / whole
    if share < _LEAST_DROPOUT_SHARE:
        return []
    called = np.unique(tree.nearest(alone)[drops.nodes()])
    location = source_locations.by_line(_query_of(profile, called), HOST_TIME_NS.name)[0]
    return [
        Finding(
            id="settings",
            severity=Severity.of_share(share),
            title=(
                f"dropout draws numbers in {profile.frame(int(called[0])).name}, which no backward "
                f"follows, called at {source_locations.location_text(profile, location.frame)}: "
                f"{share:.0%} of the time in operators"
            ),
            nodes=(*drops.nodes().tolist()[:7], location.nodes[0]),
            evidence={"dropout_ns": value, "dropout_share": share},
            gain=source_locations.bound(
                profile, HOST_TIME_NS.name, value, "dropout does nothing, as in evaluation"
            ),
            advice="call model.eval() before evaluation and inference, which also makes batch norm cheaper",
            misleads="the program samples with dropout on purpose (Monte Carlo dropout)",
        )
    ]


def _above(profile: Profile, query: Query) -> source_locations.Mask:
    """Return which nodes have a node of a query below them."""
    return profile.tree.at_or_above(query.mask())


def _query_of(profile: Profile, nodes: source_locations.Ints) -> Query:
    mask = np.zeros(len(profile.tree), np.bool_)
    mask[nodes] = True
    return Query(profile, mask)


ANALYZER = Analyzer("settings", "is a mode on that costs time and has no use here?", _find)
