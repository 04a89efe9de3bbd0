"""Layers whose weights autocast converts again in each call, in inference.

Autocast keeps the converted weights until its context ends, so that a context for each call converts all
weights for each call. It runs an operator twice: the outer converts the arguments and calls the inner. An
input is one conversion; more are weights. A training converts them once a step, because they change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.finding import Finding, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.profiler.format.frame import FrameKind, Phase
from deepcontext.profiler.format.metric import CALL_DURATION_NS, HOST_TIME_NS
from deepcontext.profiler.model.metric_values import counts_or_zeros, total
from deepcontext.profiler.model.query import Query
from deepcontext.profiler.model.tree import NO_NODE

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

_LEAST_SHARE: Final = 0.08
_LEAST_CALLS: Final = 20
# Operators that take weights; those of two activations (`matmul`, attention) may convert both.
_WITH_WEIGHTS: Final = frozenset(
    f"aten::{name}"
    for name in (
        "linear",
        "addmm",
        "conv1d",
        "conv2d",
        "conv3d",
        "conv_transpose1d",
        "conv_transpose2d",
        "conv_transpose3d",
    )
)
# Conversions for each call of a layer: the input is one, weight and bias are two.
_LEAST_CONVERSIONS: Final = 1.5


def weight_casts(profile: Profile) -> list[Finding]:
    """Return a finding for each line that calls layers whose weights are converted in each call."""
    casts = _casts(profile)
    whole = total(profile, HOST_TIME_NS.name)
    tree = profile.tree
    if not casts.count() or (tree.phase == Phase.BACKWARD).any():
        return []
    # The line that calls the model, inside of which autocast's context begins.
    modules = profile.is_kind(FrameKind.MODULE)
    outermost = modules & ~tree.below(modules)
    top = tree.nearest(outermost)[casts.nodes()]
    top = np.where(top == NO_NODE, casts.nodes(), top)
    mask = np.zeros(len(tree), np.bool_)
    mask[top] = True
    value = profile.inclusive(HOST_TIME_NS.name)
    found = []
    for location in source_locations.by_line(Query(profile, mask), HOST_TIME_NS.name):
        nodes = casts.nodes()[np.isin(top, location.nodes)]
        nodes = nodes[np.argsort(-value[nodes], kind="stable")]
        share = int(value[nodes].sum()) / whole
        if share >= _LEAST_SHARE and location.frame is not None:
            where = source_locations.location_text(profile, location.frame)
            found.append(_finding(profile, where, nodes.tolist(), share))
    return found


def _casts(profile: Profile) -> Query:
    """Select the conversions that autocast makes of more than the input of an operator."""
    tree = profile.tree
    calls = counts_or_zeros(profile, CALL_DURATION_NS.name)
    name = profile.frames.name[tree.frame]
    parent = tree.parent.clip(0)
    layers = source_locations.operators(profile, _WITH_WEIGHTS).mask()
    outer = np.zeros(len(tree), np.bool_)
    outer[parent[layers & layers[parent] & (name == name[parent])]] = True
    # A conversion to the type that a tensor already has calls nothing.
    copied = source_locations.operators(profile, {"aten::_to_copy"}).mask()
    converts = source_locations.operators(profile, {"aten::to"}).mask() & outer[parent]
    conversions = np.zeros(len(tree), np.int64)
    made = np.flatnonzero(copied & converts[parent])
    np.add.at(conversions, parent[parent[made]], calls[made])
    judged = outer & (calls >= _LEAST_CALLS) & (conversions > _LEAST_CONVERSIONS * calls)
    return Query(profile, converts & judged[parent])


def _finding(profile: Profile, where: str, nodes: list[int], share: float) -> Finding:
    value = int(profile.inclusive(HOST_TIME_NS.name)[nodes].sum())
    return Finding(
        id="copies",
        severity=Severity.of_share(share),
        title=(
            f"autocast converts the weights again in each call at {where}, {share:.0%} of the time"
        ),
        nodes=tuple(nodes[:8]),
        evidence={"copy_ns": value, "copy_share": share, "layers_count": len(nodes)},
        gain=source_locations.bound_of_copies(profile, HOST_TIME_NS.name, value),
        advice=(
            "put one torch.autocast around the whole loop, because autocast forgets the converted weights "
            "where its context ends; or convert the model once (model.bfloat16())"
        ),
        misleads="the weights change between the calls; the conversions are of several inputs",
    )
