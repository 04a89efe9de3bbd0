"""Weights that inference computes again in each call from parameters that do not change.

Weight norm, spectral norm and other parametrizations compute a weight wherever a layer reads it. A training
must do so, because each step changes the parameters. Does not judge modules that a backward follows.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.finding import Finding, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.profiler.format.frame import FrameKind, Phase
from deepcontext.profiler.format.metric import CALL_DURATION_NS, HOST_TIME_NS
from deepcontext.profiler.model.metric_values import counts_or_zeros, total
from deepcontext.profiler.model.query import Query

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

_LEAST_SHARE: Final = 0.08
_LEAST_CALLS: Final = 10
# Source: torch.nn.utils: the properties of `parametrize`, and the hooks of the older functions.
_FILES: Final = re.compile(r"/torch/nn/utils/(parametrize|weight_norm|spectral_norm)\.py$")


def recomputed_weights(profile: Profile) -> list[Finding]:
    """Return a finding if inference spends much time on parametrizations."""
    weights = _computed(profile)
    if not weights.count():
        return []
    value, whole = (
        weights.total(HOST_TIME_NS.name, inclusive=True),
        total(profile, HOST_TIME_NS.name),
    )
    share = value / whole
    inside = profile.tree.at_or_below(weights.mask())
    calls = int(counts_or_zeros(profile, CALL_DURATION_NS.name)[inside].max(initial=0))
    if share < _LEAST_SHARE or calls < _LEAST_CALLS:
        return []
    location = source_locations.by_line(weights, HOST_TIME_NS.name)[0]
    return [
        Finding(
            id="settings",
            severity=Severity.of_share(share),
            title=(
                f"parametrizations (weight norm) compute the same weights again in each call, most at "
                f"{source_locations.location_text(profile, location.frame)}: {share:.0%} of the time in "
                "operators"
            ),
            nodes=location.nodes[:8],
            evidence={"weights_ns": value, "weights_share": share, "calls_count": calls},
            gain=source_locations.bound(
                profile, HOST_TIME_NS.name, value, "each weight is computed once"
            ),
            advice=(
                "after loading, replace the parametrizations by their weights: "
                "torch.nn.utils.parametrize.remove_parametrizations(module, 'weight'), or "
                "remove_weight_norm; or call the model under torch.nn.utils.parametrize.cached()"
            ),
            misleads="the parameters change between the calls",
        )
    ]


def _computed(profile: Profile) -> Query:
    """Select where layers that no backward follows compute their weights."""
    tree, frames = profile.tree, profile.frames
    files = [
        number
        for number in map(int, np.unique(frames.file))
        if _FILES.search(frames.strings[number].replace("\\", "/"))
    ]
    if not files:
        return Query(profile, np.zeros(len(tree), np.bool_))
    is_computing = (np.isin(frames.file, files) & (frames.kind == FrameKind.PYTHON))[tree.frame]
    modules = profile.is_kind(FrameKind.MODULE)
    called = tree.outermost(modules)
    has_backward = tree.at_or_above(tree.phase == Phase.BACKWARD)
    trained = np.zeros(len(tree), np.bool_)
    trained[called[has_backward[called]]] = True
    is_inferring = tree.below(modules) & ~tree.at_or_below(trained)
    if has_backward[0] and not trained.any():  # a backward that is not linked to its forward
        is_inferring[:] = False
    return source_locations.outermost(Query(profile, is_computing & is_inferring))
