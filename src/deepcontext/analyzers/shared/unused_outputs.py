"""Parts of a model that is trained whose results take no part in the loss: heads that nothing uses.

Such a part builds a graph, and no backward runs through it, while one runs through other parts of the same
module. Invariant: silent where backwards are not linked to their forwards (`unused_graphs.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.finding import Finding, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.analyzers.shared.called_operators import module_calls
from deepcontext.analyzers.shared.unused_graphs import links_backwards
from deepcontext.profiler.format.frame import FrameKind, Phase
from deepcontext.profiler.format.metric import BUILT_GRAPH, HOST_TIME_NS
from deepcontext.profiler.model.metric_values import counts_or_zeros, total
from deepcontext.profiler.model.query import Query
from deepcontext.profiler.model.tree import NO_NODE

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

    Mask = source_locations.Mask

_LEAST_SHARE: Final = 0.05
_FEWEST_CALLS: Final = 5


def unused_outputs(profile: Profile) -> list[Finding]:
    """Return a finding for each line that calls modules which no backward runs through."""
    metric = HOST_TIME_NS.name
    if BUILT_GRAPH.name not in profile.metrics or not links_backwards(profile):
        return []
    modules = Query(profile, _modules(profile))
    whole = total(profile, metric)
    found = []
    for location in source_locations.by_line(modules, metric, _LEAST_SHARE * whole):
        nodes = np.array(location.nodes, np.int64)
        if int(module_calls(profile, nodes).sum()) < _FEWEST_CALLS:
            continue
        share = location.value / whole
        where = source_locations.location_text(profile, location.frame)
        found.append(
            Finding(
                id="settings",
                severity=Severity.of_share(share),
                title=(
                    f"{profile.frame(location.nodes[0]).name} at {where} computes with gradients enabled "
                    f"what no loss uses, {share:.0%} of the time in operators"
                ),
                nodes=location.nodes[:8],
                evidence={"host_time_ns": location.value, "time_share": share},
                gain=source_locations.bound(
                    profile, metric, location.value, "the result is not computed"
                ),
                advice=(
                    "leave the part out of the training's forward if nothing reads its result (an auxiliary "
                    "head, a decoder); call it under torch.no_grad() if the result is only watched, or is "
                    "the target of a loss"
                ),
                misleads=(
                    "the result is used without a gradient: it is detached, read, or compared; then only the "
                    "graph can be saved"
                ),
            )
        )
    return found


def _modules(profile: Profile) -> Mask:
    """Return the outermost modules in a module with a backward that build a graph and have none."""
    tree = profile.tree
    modules = profile.is_kind(FrameKind.MODULE)
    has_backward = tree.at_or_above(tree.phase == Phase.BACKWARD)
    builds = tree.at_or_above(counts_or_zeros(profile, BUILT_GRAPH.name) > 0)
    above = np.where(tree.parent == NO_NODE, NO_NODE, tree.nearest(modules)[tree.parent])
    inside = (above != NO_NODE) & has_backward[above]
    return np.asarray(modules & builds & ~has_backward & inside)
