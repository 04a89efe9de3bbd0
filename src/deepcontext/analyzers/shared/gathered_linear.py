"""Linear layers that compute on gathered rows, and so on each row of the source many times.

Recognised by sizes: the backward of the gather allocates a gradient of the source, and that of the layer one
of the gathered rows. Needs a backward of one call; other calls of the same line count with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.finding import Finding, Severity
from deepcontext.analyzers.shared import allocations, source_locations
from deepcontext.analyzers.shared.called_operators import (
    NO_FUNCTION,
    called_by_user,
    functions_of_nodes,
)
from deepcontext.analyzers.shared.operator_names import POINTWISE
from deepcontext.profiler.format.frame import FrameKind, Phase
from deepcontext.profiler.format.metric import CALL_DURATION_NS, HOST_TIME_NS
from deepcontext.profiler.model.metric_values import counts_or_zeros, total
from deepcontext.profiler.model.query import Query
from deepcontext.profiler.model.tree import NO_NODE
from deepcontext.profiler.summaries.lines import nearest_user

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

    Ints = source_locations.Ints
    Mask = source_locations.Mask

_LEAST_SHARE: Final = 0.1
# The gathered rows by the source. With fewer, gathering wider results may cost as much as it saves.
_LEAST_TIMES: Final = 4
_GATHERS: Final = frozenset({"aten::index", "aten::index_select"})
# A sum of two gathers is a gather of each; a sum with values of each place is not.
_SUMS: Final = frozenset({"aten::add", "aten::add_", "aten::sub", "aten::sub_"})
# A product may weigh each place by values of its own.
_OWN_VALUES: Final = frozenset(f"aten::{name}" for name in ("mul", "mul_", "div", "div_", "where"))
# Several gathered rows may become one input of the layer, as in a convolution.
_REGROUPS: Final = frozenset(
    f"aten::{name}" for name in ("reshape", "view", "flatten", "unflatten")
)
_LINEAR: Final = frozenset({"aten::linear"})


def gathered_linear(profile: Profile) -> list[Finding]:
    """Return a finding for each line with a linear layer on rows that its function gathers."""
    return profile.once(gathered_linear, lambda: _gathered_linear(profile))


def _gathered_linear(profile: Profile) -> list[Finding]:
    metric = HOST_TIME_NS.name
    if not {allocations.ALLOCATED, metric, CALL_DURATION_NS.name} <= set(profile.metrics):
        return []
    if not all(source_locations.operators(profile, each).count() for each in (_GATHERS, _LINEAR)):
        return []
    rows = _Rows(profile)
    if not len(rows.gathers):
        return []
    lines: dict[int, float] = {}
    for layer in rows.layers.tolist():
        times = rows.times(layer)
        if times:
            line = int(rows.line[layer])
            lines[line] = max(times, lines.get(line, 0))
    chosen = np.zeros(len(profile.tree), np.bool_)
    chosen[rows.layers[np.isin(rows.line[rows.layers], list(lines))]] = True
    least = _LEAST_SHARE * total(profile, metric)
    return [
        _finding(
            profile,
            location,
            lines[int(rows.line[location.nodes[0]])],
            rows.saved_of_gathers(np.array(location.nodes)),
        )
        for location in source_locations.by_line(Query(profile, chosen), metric, least)
    ]


class _Rows:
    """Gathers and linear layers of the user's functions, with what they allocate.

    Attributes:
        gathers: nodes of gathers that repeat rows of their source.
        layers: nodes of linear layers.
        line: number of the user's line of each node, shape (nodes,).
    """

    def __init__(self, profile: Profile) -> None:
        tree = profile.tree
        self._profile = profile
        self._made = allocations.largest_made(profile)
        self._gradient = allocations.largest_gradient(profile)
        self._function = functions_of_nodes(profile)
        self._calls = counts_or_zeros(profile, CALL_DURATION_NS.name)
        forward = (tree.phase != Phase.BACKWARD) & (self._function != NO_FUNCTION)
        self._called = called_by_user(profile) & profile.is_kind(FrameKind.OPERATOR) & forward
        owner = nearest_user(profile)
        frame = tree.frame[owner]
        self.line = np.where(owner == NO_NODE, 0, source_locations.line_numbers(profile)[frame])
        self._number = np.where(owner == NO_NODE, 0, profile.frames.line[frame])
        gathers = self._mask(_GATHERS) & self._called & (self._gradient > 0)
        self.gathers = np.flatnonzero(gathers & (self._made >= _LEAST_TIMES * self._gradient))
        self.layers = source_locations.outermost(
            Query(profile, self._mask(_LINEAR) & forward)
        ).nodes()

    def _mask(self, names: set[str] | frozenset[str]) -> Mask:
        return np.asarray(source_locations.operators(self._profile, names).mask())

    def times(self, layer: int) -> float:
        """Return how often a layer computes on each row of a gather's source, 0 for other layers."""
        size = int(self._gradient[layer])
        before = (self._function == self._function[layer]) & (self._number <= self._number[layer])
        of_size = before & self._called & (self._made == size)
        gathers = self.gathers[of_size[self.gathers]]
        # A source as large as the layer's result may be this result.
        gathers = gathers[self._gradient[gathers] != self._made[layer]]
        if not size or not len(gathers) or self._is_changed(before, of_size, gathers):
            return 0
        return size / int(self._gradient[gathers].max())

    def saved_of_gathers(self, layers: Ints) -> int:
        """Return what gathers save that move the results of layers instead of their inputs, ns."""
        is_gather = self._mask(_GATHERS) & self._called
        gathers = np.flatnonzero(is_gather & (self._function == self._function[layers[0]]))
        moved, results = (
            int((self._made[each] * self._calls[each]).sum()) for each in (gathers, layers)
        )
        spent = int(self._profile.inclusive(HOST_TIME_NS.name)[gathers].sum())
        return max(spent * (moved - results) // max(moved, 1), 0)

    def _is_changed(self, before: Mask, of_size: Mask, gathers: Ints) -> bool:
        """Return whether a layer's input may be more than rows of the source, each by itself."""
        if (before & self._called & self._mask(_REGROUPS)).any():
            return True
        sums = of_size & self._mask(_SUMS)
        if self._calls[sums].sum() >= max(self._calls[gathers].sum(), 1):
            return True
        rowwise = _GATHERS | _LINEAR | _SUMS | (POINTWISE - _OWN_VALUES)
        others = of_size & ~self._mask(rowwise)
        return bool(others.any())


def _finding(
    profile: Profile, location: source_locations.Location, times: float, gathered_ns: int
) -> Finding:
    share = location.value / total(profile, HOST_TIME_NS.name)
    where = source_locations.location_text(profile, location.frame)
    return Finding(
        id="cheaper_operator",
        severity=Severity.of_share(share),
        title=(
            f"{where} computes a linear layer on gathered rows, {times:.0f} times on each row on average: "
            f"{share:.0%} of the time in operators"
        ),
        nodes=location.nodes[:8],
        evidence={
            "host_time_ns": location.value,
            "time_share": share,
            "calls_count": location.count,
            "times": round(times, 1),
        },
        gain=source_locations.bound(
            profile,
            HOST_TIME_NS.name,
            location.value + gathered_ns,
            "the layer costs nothing, and the gather moves rows of its width",
        ),
        advice=(
            "apply the layer before the gather, layer(x)[index] instead of layer(x[index]): it computes on "
            "each row once, and the gather moves rows of the layer's width"
        ),
        misleads=(
            "the layer has many more outputs than inputs, so that gathering them costs more; something "
            "other than the index changes the rows before the layer"
        ),
    )
