"""Last layers and losses that compute on positions whose targets the loss ignores.

Targets are looked at in short windows, on the host only. The layer is recognised by its result, which is as
large as the log probabilities of the loss. Does not judge losses on a device, or recordings with shapes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.finding import Finding, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.profiler.format.frame import FrameKind, Phase
from deepcontext.profiler.format.metric import (
    CALL_DURATION_NS,
    HOST_TIME_NS,
    IGNORED_TARGETS,
    LOSS_TARGETS,
)
from deepcontext.profiler.model.metric_values import (
    counts_or_zeros,
    exclusive_or_zeros,
    inclusive_or_zeros,
    total,
)
from deepcontext.profiler.model.query import Query
from deepcontext.profiler.model.tree import NO_NODE

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

    Ints = source_locations.Ints

_ALLOCATED: Final = "alloc_bytes"
_LEAST_LOOKS: Final = 3
_LEAST_IGNORED: Final = 0.5
# What the ignored targets cost, of all.
_LEAST_SHARE: Final = 0.05


def ignored_targets(profile: Profile) -> list[Finding]:
    """Return a finding for each loss that ignores most targets, if the layer before it costs much."""
    if not {LOSS_TARGETS.name, _ALLOCATED, HOST_TIME_NS.name} <= set(profile.metrics):
        return []
    operators = Query(profile, profile.is_kind(FrameKind.OPERATOR))
    of_node = profile.tree.nearest(source_locations.outermost(operators).mask())
    looks = counts_or_zeros(profile, LOSS_TARGETS.name)
    found = []
    for loss in np.unique(of_node[(looks > 0) & (of_node != NO_NODE)]).tolist():
        inside = (of_node == loss) & (looks > 0)
        seen = int(exclusive_or_zeros(profile, LOSS_TARGETS.name)[inside].sum())
        ignored = int(exclusive_or_zeros(profile, IGNORED_TARGETS.name)[inside].sum())
        if int(looks[inside].sum()) >= _LEAST_LOOKS and ignored >= _LEAST_IGNORED * seen:
            found += _judge(profile, loss, ignored / seen)
    return found


def _judge(profile: Profile, loss: int, ignored: float) -> list[Finding]:
    layers = _layers(profile, loss)
    inclusive = inclusive_or_zeros(profile, HOST_TIME_NS.name)
    spent = int(inclusive[[loss, *layers]].sum())
    whole = total(profile, HOST_TIME_NS.name)
    saved = round(spent * ignored)
    if saved < _LEAST_SHARE * whole:
        return []
    what = f"the result of {_place(profile, layers[0])}" if layers else "its input"
    return [
        Finding(
            id="padding",
            severity=Severity.of_share(saved / whole),
            title=(
                f"the loss at {_place(profile, loss)} ignores {ignored:.0%} of the positions, for which "
                f"{what} is computed, too: {spent / whole:.0%} of the time in operators"
            ),
            nodes=(*layers[:7], loss),
            evidence={"host_time_ns": spent, "time_share": spent / whole, "ignored_share": ignored},
            gain=source_locations.bound(
                profile, HOST_TIME_NS.name, saved, "the time is proportional to the positions"
            ),
            advice=(
                "select the positions that have a target before the last layer: "
                "keep = labels != ignore_index, then cross_entropy(head(states[keep]), labels[keep])"
            ),
            misleads=(
                "the shapes must not change (torch.compile, CUDA graphs); the logits of all positions are "
                "used elsewhere"
            ),
        )
    ]


def _layers(profile: Profile, loss: int) -> list[int]:
    """Return the linear layers with results as large as the loss's largest, and as many calls."""
    tree, rows = profile.tree, profile.metrics[_ALLOCATED]
    if rows.maximum is None:
        return []
    largest = np.zeros(len(tree), np.int64)
    forward = tree.phase[rows.node] != Phase.BACKWARD
    largest[rows.node[forward]] = rows.maximum[forward]
    calls = counts_or_zeros(profile, CALL_DURATION_NS.name)
    size = int(largest[loss : int(tree.subtree_end[loss])].max(initial=0))
    linear = source_locations.operators(profile, {"aten::linear"}).nodes()
    return [
        node
        for node in linear.tolist()
        if size
        and calls[node] == calls[loss]
        and int(largest[node : int(tree.subtree_end[node])].max(initial=0)) == size
    ]


def _place(profile: Profile, node: int) -> str:
    owner = source_locations.climb(profile, np.array([node]), profile.is_user_code())
    frame = None if owner[0] == NO_NODE else profile.frame(int(owner[0]))
    return source_locations.location_text(profile, frame)
