"""Graphs that a backward builds for derivatives of its gradients (`create_graph=True`), and nobody uses.

Operators of such a backward run with gradients enabled, as short windows show. A second backward runs
operators named after those of the first. Invariant: silent in a profile that has one,
and where backwards are not linked to their forwards (`unused_graphs.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.finding import Finding, Gain, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.analyzers.shared.backward_passes import backward_line
from deepcontext.analyzers.shared.unused_graphs import links_backwards
from deepcontext.profiler.format.frame import FrameKind, Phase
from deepcontext.profiler.format.metric import SECOND_GRAPH
from deepcontext.profiler.model.metric_values import counts_or_zeros, exclusive_or_zeros

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

_LEAST_SHARE: Final = 0.1
_LEAST_BYTES: Final = 16 << 20
_HIGH_SHARE: Final = 0.5
_MADE: Final = "Backward"


def unused_second_graphs(profile: Profile, prefix: str, peak: int) -> list[Finding]:
    """Return at most one finding; see `unused_graphs` for the arguments."""
    tree = profile.tree
    is_backward = tree.phase == Phase.BACKWARD
    builds = counts_or_zeros(profile, SECOND_GRAPH.name) > 0
    held = int(exclusive_or_zeros(profile, f"{prefix}peak_bytes")[is_backward].sum())
    if not builds.any() or held < max(_LEAST_BYTES, _LEAST_SHARE * peak):
        return []
    made = source_locations.nodes_named(profile, FrameKind.OPERATOR, lambda name: _MADE in name)
    first = made.mask() & is_backward
    line = backward_line(profile)
    if (first & tree.below(first)).any() or not links_backwards(profile) or line is None:
        return []
    share = held / peak
    metric = f"{prefix}peak_bytes"
    return [
        Finding(
            id="memory",
            severity=Severity.HIGH if share >= _HIGH_SHARE else Severity.WARNING,
            title=(
                f"the backward at {source_locations.location_text(profile, line.frame)} builds a graph of "
                "its own (create_graph=True), and no second backward uses it: "
                f"{share:.0%} of the {'device ' if prefix else ''}memory at the peak"
            ),
            nodes=(*line.nodes[:4], *np.flatnonzero(builds)[:4].tolist()),
            evidence={metric: held, "peak_share": share},
            gain=Gain(metric, held, share, "the backward keeps nothing"),
            advice=(
                "leave out create_graph=True where no loss contains the gradient, as in a simulation or an "
                "evaluation; create_graph=self.training keeps it for the training"
            ),
            misleads="the second backward runs after the end of the profile",
        )
    ]
