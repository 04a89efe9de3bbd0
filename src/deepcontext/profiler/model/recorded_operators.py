"""The operators of a tree, with the shapes and types in their names (``--shapes``): which of them to count.

Knows neither formulas nor metrics. Invariant: an operator inside a counted one is not counted; operators of
the backward are below their forward operator and count for themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.model.metric_rows import MetricRows
from deepcontext.profiler.model.operator_inputs import has_inputs, split_name
from deepcontext.profiler.model.tree import NO_NODE

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    import numpy.typing as npt

    from deepcontext.profiler.format.metric import MetricDescriptor
    from deepcontext.profiler.model.frame_table import FrameTable
    from deepcontext.profiler.model.operator_inputs import Inputs, Shape
    from deepcontext.profiler.model.tree import Tree

    Ints = npt.NDArray[np.int64]
    Floats = npt.NDArray[np.float64]
    Mask = npt.NDArray[np.bool_]

# Their inputs are passed on, and say nothing about the sizes of results.
_PASS_ON = frozenset({"aten::_convolution", "aten::mkldnn_convolution"})


def has_shapes(frames: FrameTable) -> bool:
    """Return whether operators were recorded with the shapes of their inputs."""
    names = set(frames.name[frames.kind == FrameKind.OPERATOR].tolist())
    # One search instead of one for each name; what marks inputs cannot span the separator.
    return has_inputs("\n".join([frames.strings[int(name)] for name in names]))


@dataclass(frozen=True, slots=True, eq=False)
class CountedOperators:
    """What operators compute or move, by node.

    Attributes:
        nodes: the counted operators, ascending, shape (operators,), int64.
        a_call: operations, or bytes, of one call of each, shape (operators,), float64.
        calls: number of calls of each, shape (operators,), int64.
        types: element type of each one's first tensor, "" where it was not recorded.
        unknown: operators to count whose inputs do not say enough, ascending, shape (unknown operators,),
            int64.
    """

    nodes: Ints
    a_call: Floats
    calls: Ints
    types: tuple[str, ...]
    unknown: Ints

    @property
    def values(self) -> Floats:
        """Value of each operator in the whole run, shape (operators,), float64."""
        return self.a_call * self.calls

    def rows(self, descriptor: MetricDescriptor) -> MetricRows:
        """Return the rows of a metric; none where their sum does not fit 64 bits."""
        return MetricRows.of_derived(descriptor, self.nodes, self.calls, self.values)


class RecordedOperators:
    """The operators of a tree; names are read once."""

    def __init__(self, frames: FrameTable, tree: Tree) -> None:
        self.tree = tree
        self._frames = frames
        self._is_operator = np.asarray(frames.kind == FrameKind.OPERATOR)
        self._parsed: dict[int, tuple[str, Inputs]] = {}

    def frame(self, node: int) -> int:
        """Return the frame of a node."""
        return int(self.tree.frame[node])

    def name(self, node: int) -> str:
        """Return the name of a node without its inputs."""
        return self._of_frame(self.frame(node))[0]

    def inputs(self, node: int) -> Inputs:
        """Return the inputs of a node."""
        return self._of_frame(self.frame(node))[1]

    def all(self) -> Iterator[tuple[str, Inputs]]:
        """Yield the name and the inputs of every frame of an operator."""
        for frame in np.flatnonzero(self._is_operator).tolist():
            yield self._of_frame(frame)

    def counted(self, wanted: Collection[str]) -> Ints:
        """Return the nodes to count, ascending: operators by name, without those inside others.

        Where an operator contains one of the same name, the inner one is counted: the outer one only
        converted its inputs (autocast), or added a dimension to them (vmap).
        """
        mask = self._named(wanted)
        kept = np.zeros(len(self.tree), np.bool_)
        for phase in np.unique(self.tree.phase[mask]).tolist():
            of_phase = mask & (self.tree.phase == phase)
            of_phase[self._passing_on(of_phase)] = False
            kept |= of_phase & ~self.tree.below(of_phase)
        return np.flatnonzero(kept)

    def count(
        self, wanted: Ints, of_call: Callable[[int], int | None], calls: MetricRows
    ) -> CountedOperators:
        """Count operators.

        Args:
            wanted: the nodes to count, ascending.
            of_call: returns the value of one call of a node, None where it is not known.
            calls: rows of `CALL_DURATION_NS`.
        """
        count = np.zeros(len(self.tree), np.int64)
        count[calls.node] = calls.count
        found = {node: of_call(node) for node in wanted.tolist()}
        known = {node: float(value) for node, value in found.items() if value is not None}
        nodes = np.array(list(known), np.int64)
        return CountedOperators(
            nodes,
            np.array(list(known.values()), np.float64),
            count[nodes],
            tuple(self.inputs(node).type for node in known),
            np.array([node for node in found if node not in known], np.int64),
        )

    def leaves(self) -> Ints:
        """Return the operators that contain no operator of their own phase, ascending."""
        is_operator = self._is_operator[self.tree.frame]
        found = np.zeros(len(self.tree), np.bool_)
        for phase in np.unique(self.tree.phase[is_operator]).tolist():
            of_phase = is_operator & (self.tree.phase == phase)
            found |= of_phase & (self.tree.inclusive(of_phase.astype(np.int64)) == 1)
        return np.flatnonzero(found)

    def inside(self, nodes: Ints) -> Mask:
        """Return whether each node is at or below one of these and of its phase, shape (nodes,)."""
        found = np.zeros(len(self.tree), np.bool_)
        for phase in np.unique(self.tree.phase[nodes]).tolist():
            mask = np.zeros(len(self.tree), np.bool_)
            mask[nodes] = self.tree.phase[nodes] == phase
            found |= self.tree.at_or_below(mask) & (self.tree.phase == phase)
        return found

    def shapes_inside(self, node: int) -> set[Shape]:
        """Return the shapes of inputs of operators inside an operator, its backward left out."""
        tree = self.tree
        inside = np.arange(node + 1, int(tree.subtree_end[node]))
        inside = inside[tree.phase[inside] == tree.phase[node]]
        frames = np.unique(tree.frame[inside])
        found: set[Shape] = set()
        for frame in frames[self._is_operator[frames]].tolist():
            name, inputs = self._of_frame(frame)
            if name not in _PASS_ON:
                found.update(shape for shape in inputs.shapes if shape is not None)
        return found

    def is_called_by(self, node: int, beginning: str) -> bool:
        """Return whether an operator, or one that called it from the same line, is so named."""
        while node != NO_NODE:
            frame = self.frame(node)
            if self._is_operator[frame] and self._of_frame(frame)[0].startswith(beginning):
                return True
            if not self._is_operator[frame] and self._frames.kind[frame] == FrameKind.PYTHON:
                return False
            node = int(self.tree.parent[node])
        return False

    def _of_frame(self, frame: int) -> tuple[str, Inputs]:
        text = int(self._frames.name[frame])
        if text not in self._parsed:
            self._parsed[text] = split_name(self._frames.strings[text])
        return self._parsed[text]

    def _named(self, wanted: Collection[str]) -> Mask:
        is_wanted = np.zeros(len(self._frames), np.bool_)
        for frame in np.flatnonzero(self._is_operator).tolist():
            is_wanted[frame] = self._of_frame(frame)[0] in wanted
        return np.asarray(is_wanted[self.tree.frame])

    def _passing_on(self, mask: Mask) -> list[int]:
        """Return the nodes of a mask that contain a node of the mask with the same name."""
        nearest = self.tree.nearest(mask)
        nodes = np.flatnonzero(mask)
        above = nearest[self.tree.parent[nodes]]
        pairs = zip(nodes[above != NO_NODE].tolist(), above[above != NO_NODE].tolist(), strict=True)
        return [outer for inner, outer in pairs if self.name(inner) == self.name(outer)]
