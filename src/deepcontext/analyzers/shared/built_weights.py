"""Weights of layers that each forward builds as a product of two thin matrices, as low-rank adapters do.

How thin the matrices are shows in what the backward of their product allocates: the gradients of both.
Needs a backward; without one, a profile without shapes does not tell a thin matrix from a wide one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.finding import Finding, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.analyzers.shared.called_operators import (
    NO_FUNCTION,
    called_by_user,
    functions_of_nodes,
)
from deepcontext.analyzers.shared.operator_names import MATRIX_PRODUCTS
from deepcontext.profiler.format.frame import FrameKind, Phase
from deepcontext.profiler.format.metric import CALL_DURATION_NS, HOST_TIME_NS
from deepcontext.profiler.model.metric_values import counts_or_zeros, total
from deepcontext.profiler.model.query import Query

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

    Ints = source_locations.Ints
    Mask = source_locations.Mask

_ALLOCATED: Final = "alloc_bytes"
_LEAST_CALLS: Final = 10
_LEAST_SHARE: Final = 0.05
# The product's size by that of both gradients together: with square weights, a rank of a sixteenth or less.
_LEAST_THIN: Final = 8
# The product's size by that of what the layer makes with it: with many rows, building it costs less.
_LEAST_FEW_ROWS: Final = 4
# What the sum of products may go through and still be computed with the thin matrices one after the other.
_LINEAR: Final = frozenset(
    f"aten::{name}"
    for name in (
        "add",
        "add_",
        "sub",
        "sub_",
        "mul",
        "mul_",
        "div",
        "div_",
        "neg",
        "t",
        "transpose",
    )
)


def built_weights(profile: Profile) -> list[Finding]:
    """Return a finding for each line that builds weights from thin matrices, for few rows."""
    metric = HOST_TIME_NS.name
    if not {_ALLOCATED, metric, CALL_DURATION_NS.name} <= set(profile.metrics):
        return []
    products = source_locations.operators(profile, MATRIX_PRODUCTS).mask()
    layers = source_locations.operators(profile, {"aten::linear"}).mask()
    called = called_by_user(profile) & profile.is_kind(FrameKind.OPERATOR)
    called &= profile.tree.phase != Phase.BACKWARD
    functions = functions_of_nodes(profile)
    candidates = products & called & np.isin(functions, functions[layers & called])
    if not candidates.any():
        return []
    sizes = _Sizes(profile)
    building = np.zeros(len(profile.tree), np.bool_)
    chosen = np.zeros(len(profile.tree), np.bool_)
    for function in np.unique(functions[candidates & (functions != NO_FUNCTION)]).tolist():
        own = np.flatnonzero(called & (functions == function))
        made = np.array([sizes.made(node) for node in own.tolist()], np.int64)
        is_thin = np.array([
            candidates[node] and sizes.is_thin(node, size)
            for node, size in zip(own.tolist(), made.tolist(), strict=True)
        ])
        for size in np.unique(made[is_thin]).tolist():
            same = own[made == size]
            names = {source_locations.base_name(profile.frame(each).name) for each in same.tolist()}
            is_linear = names <= _LINEAR | MATRIX_PRODUCTS
            if is_linear and sizes.are_for_few_rows(own[layers[own]], size):
                chosen[own[is_thin & (made == size)]] = True
                building[same] = True
    least = _LEAST_SHARE * total(profile, metric)
    return [
        _finding(profile, location, functions, building)
        for location in source_locations.by_line(Query(profile, chosen), metric)
        if _spent(profile, functions, building, location) >= least
    ]


class _Sizes:
    """What operators allocate in a call, for results of their forward and gradients of their backward."""

    def __init__(self, profile: Profile) -> None:
        self._tree = profile.tree
        self._rows = profile.metrics[_ALLOCATED]
        self.calls = counts_or_zeros(profile, CALL_DURATION_NS.name)
        maximum = self._rows.maximum
        self._largest = np.zeros(len(self._tree), np.int64)
        self._bytes = profile.exclusive(_ALLOCATED)
        if maximum is not None:
            self._largest[self._rows.node] = maximum

    def _parts(self, node: int) -> tuple[slice, Mask]:
        inside = slice(node, int(self._tree.subtree_end[node]))
        return inside, np.asarray(self._tree.phase[inside] == Phase.BACKWARD)

    def made(self, node: int) -> int:
        """Return the largest result of the forward, bytes."""
        inside, is_backward = self._parts(node)
        return int(self._largest[inside][~is_backward].max(initial=0))

    def is_thin(self, node: int, size: int) -> bool:
        """Return whether the gradients of both operands are small beside the product."""
        inside, is_backward = self._parts(node)
        pieces = np.where(is_backward & (self._bytes[inside] > 0), self.calls[inside], 0)
        gradients = int(self._bytes[inside][is_backward].sum())
        calls = int(self.calls[node])
        if calls < _LEAST_CALLS or int(pieces.max(initial=0)) < 2 * calls:
            return False
        return gradients * _LEAST_THIN <= size * calls

    def are_for_few_rows(self, users: Ints, size: int) -> bool:
        """Return whether layers get a gradient of the product's size, and make little with the product."""
        found = False
        for node in users.tolist():
            inside, is_backward = self._parts(node)
            gradient = int(self._largest[inside][is_backward].max(initial=0))
            if gradient != size:
                continue
            found = True
            if self.made(node) * _LEAST_FEW_ROWS > size:
                return False
        return found


def _spent(
    profile: Profile, functions: Ints, building: Mask, location: source_locations.Location
) -> int:
    """Return the time of the operators that build the weights of a line, with their backward, ns."""
    own = building & (functions == functions[location.nodes[0]])
    return source_locations.outermost(Query(profile, own)).total(HOST_TIME_NS.name, inclusive=True)


def _finding(
    profile: Profile, location: source_locations.Location, functions: Ints, building: Mask
) -> Finding:
    spent = _spent(profile, functions, building, location)
    share = spent / total(profile, HOST_TIME_NS.name)
    return Finding(
        id="model_calls",
        severity=Severity.of_share(share),
        title=(
            f"{source_locations.location_text(profile, location.frame)} builds the weights of a layer from "
            f"two thin matrices in each of {location.count:,} calls: {share:.0%} of the time in operators"
        ),
        nodes=location.nodes[:8],
        evidence={"host_time_ns": spent, "time_share": share, "calls_count": location.count},
        gain=source_locations.bound(
            profile, HOST_TIME_NS.name, spent, "products with the thin matrices cost nothing"
        ),
        advice=(
            "multiply the values by the two small matrices one after the other, linear(linear(values, down), "
            "up), and add the result to that of the layer: the large matrix and its gradient are never made; "
            "for inference add the product to the weight once (merge)"
        ),
        misleads="the product is multiplied by a mask of its own size, or batches become much larger",
    )
