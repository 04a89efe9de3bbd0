"""Floating-point operations of the operators in a tree, where names hold the shapes of inputs (``--shapes``).

Derived when a caller asks, never stored. Invariant: an operator inside a counted operator is not
counted; operators of the backward are below their forward operator and are counted separately.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.format.metric import FLOPS
from deepcontext.profiler.model.flop_formulas import (
    FORMULAS,
    WITHOUT_FORMULA,
    convolution_flops,
    flops,
    split_name,
)
from deepcontext.profiler.model.metric_rows import MetricRows
from deepcontext.profiler.model.tree import NO_NODE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy.typing as npt

    from deepcontext.profiler.model.flop_formulas import Shape, Shapes
    from deepcontext.profiler.model.frame_table import FrameTable
    from deepcontext.profiler.model.tree import Tree

    Ints = npt.NDArray[np.int64]
    Floats = npt.NDArray[np.float64]
    Mask = npt.NDArray[np.bool_]

_CONVOLUTIONS: Final = frozenset({
    "aten::convolution",
    "aten::convolution_overrideable",
    "mkldnn::_convolution_pointwise",
})
_CONVOLUTION_BACKWARD: Final = "aten::convolution_backward"
_TRANSPOSED: Final = "aten::conv_transpose"
# Occurs in the name of an operator with shapes, and in no other name.
_SHAPES: Final = "(["


@dataclass(frozen=True, slots=True, eq=False)
class OperatorFlops:
    """Floating-point operations by node.

    Attributes:
        nodes: the counted operators, ascending, shape (operators,), int64.
        a_call: floating-point operations of one call of each, shape (operators,), float64.
        calls: number of calls of each, shape (operators,), int64.
        unknown: calls of operators that multiply matrices of unknown sizes, by name.
    """

    nodes: Ints
    a_call: Floats
    calls: Ints
    unknown: Mapping[str, int]

    @property
    def values(self) -> Floats:
        """Floating-point operations of each operator in the whole run, shape (operators,), float64."""
        return self.a_call * self.calls


def has_shapes(frames: FrameTable) -> bool:
    """Return whether operators were recorded with the shapes of their inputs."""
    names = np.unique(frames.name[frames.kind == FrameKind.OPERATOR]).tolist()
    return any(_SHAPES in frames.strings[name] for name in names)


def flops_rows(frames: FrameTable, tree: Tree, calls: MetricRows) -> MetricRows:
    """Return the rows of `FLOPS`; none where their sum does not fit 64 bits.

    Args:
        frames: the distinct frames.
        tree: the nodes.
        calls: rows of `CALL_DURATION_NS`.
    """
    found = operator_flops(frames, tree, calls)
    values = found.values
    is_shown = values.sum() < np.iinfo(np.int64).max
    keep = (values > 0) & is_shown
    return MetricRows(
        FLOPS,
        found.nodes[keep].astype(np.uint32),
        found.calls[keep].astype(np.uint64),
        values[keep].astype(np.int64),
    )


def operator_flops(frames: FrameTable, tree: Tree, calls: MetricRows) -> OperatorFlops:
    """Return the floating-point operations of each operator; arguments as of `flops_rows`."""
    operators = _Operators(frames, tree)
    count = np.zeros(len(tree), np.int64)
    count[calls.node] = calls.count
    nodes, values = [], []
    unknown: Counter[str] = Counter()
    for node in operators.counted():
        value = operators.flops(node)
        if value is None:
            unknown[operators.name(node)] += int(count[node])
        else:
            nodes.append(node)
            values.append(float(value))
    index = np.array(nodes, np.int64)
    return OperatorFlops(index, np.array(values, np.float64), count[index], dict(unknown))


class _Operators:
    """The operators of a tree, with the shapes in their names."""

    def __init__(self, frames: FrameTable, tree: Tree) -> None:
        self._tree = tree
        self._frames = frames
        self._is_operator = np.asarray(frames.kind == FrameKind.OPERATOR)
        self._parsed: dict[int, tuple[str, Shapes]] = {}
        self._flops: dict[int, int | None] = {}
        # The output of a convolution has the shape of its gradient: by the shapes of the inputs.
        self._outputs: dict[tuple[Shape | None, ...], set[Shape | None]] = {}
        for frame in np.flatnonzero(self._is_operator).tolist():
            name, shapes = self._of_frame(frame)
            if name == _CONVOLUTION_BACKWARD and len(shapes) > 2:  # noqa: PLR2004  gradient, input, weight
                self._outputs.setdefault((shapes[1], shapes[2]), set()).add(shapes[0])

    def _of_frame(self, frame: int) -> tuple[str, Shapes]:
        text = int(self._frames.name[frame])
        if text not in self._parsed:
            self._parsed[text] = split_name(self._frames.strings[text])
        return self._parsed[text]

    def name(self, node: int) -> str:
        """Return the name of a node without shapes."""
        return self._of_frame(int(self._tree.frame[node]))[0]

    def counted(self) -> Iterator[int]:
        """Yield the outermost operators that have a formula, or should have one."""
        wanted = {_CONVOLUTION_BACKWARD, *_CONVOLUTIONS, *FORMULAS, *WITHOUT_FORMULA}
        is_wanted = np.zeros(len(self._frames), np.bool_)
        for frame in np.flatnonzero(self._is_operator).tolist():
            is_wanted[frame] = self._of_frame(frame)[0] in wanted
        mask = is_wanted[self._tree.frame]
        nested = np.zeros(len(self._tree), np.bool_)
        for phase in np.unique(self._tree.phase[mask]):
            of_phase = mask & (self._tree.phase == phase)
            nested |= of_phase & self._tree.below(of_phase)
        yield from np.flatnonzero(mask & ~nested).tolist()

    def flops(self, node: int) -> int | None:
        """Return the floating-point operations of one call, None if they are not known."""
        frame = int(self._tree.frame[node])
        name, shapes = self._of_frame(frame)
        if name in _CONVOLUTIONS:
            return self._convolution(node, shapes)
        if name == _CONVOLUTION_BACKWARD:
            return self._convolution_backward(node, shapes)
        if frame not in self._flops:
            self._flops[frame] = flops(name, shapes) if name in FORMULAS else None
        return self._flops[frame]

    def _convolution(self, node: int, shapes: Shapes) -> int | None:
        image, weight = (*shapes, None, None)[:2]
        if image is None or weight is None or len(image) != len(weight):
            return None
        if self._is_transposed(node):
            return convolution_flops(weight, image[0], image[2:])
        outputs = self._outputs.get((image, weight)) or {
            shape
            for shape in self._shapes_inside(node)
            if len(shape) == len(image) and shape[:2] == (image[0], weight[0]) and shape != image
        }
        positions = {shape[2:] for shape in outputs if shape is not None}
        if not positions and image[1] == weight[0]:
            # The operators inside show one shape where input and output have the same.
            positions = {each[2:] for each in self._shapes_inside(node) if each == image}
        return convolution_flops(weight, image[0], positions.pop()) if len(positions) == 1 else None

    def _convolution_backward(self, node: int, shapes: Shapes) -> int | None:
        gradient, image, weight = (*shapes, None, None, None)[:3]
        if gradient is None or image is None or weight is None or len(image) != len(weight):
            return None
        positions = image[2:] if self._is_transposed(node) else gradient[2:]
        half = convolution_flops(weight, image[0], positions)
        # A gradient is not computed if no earlier operator needs it, or the weight is frozen. On a
        # CPU the operators inside show this; elsewhere both gradients are assumed to be computed.
        inside = self._shapes_inside(node)
        made = sum(each in inside for each in (image, weight))
        return half * (made or 2)

    def _shapes_inside(self, node: int) -> set[Shape]:
        """Return the shapes of inputs of operators inside an operator, its backward left out."""
        tree = self._tree
        inside = np.arange(node + 1, int(tree.subtree_end[node]))
        inside = inside[tree.phase[inside] == tree.phase[node]]
        frames = np.unique(tree.frame[inside])
        found: set[Shape] = set()
        for frame in frames[self._is_operator[frames]].tolist():
            name, shapes = self._of_frame(frame)
            if name not in {"aten::_convolution", "aten::mkldnn_convolution"}:  # inputs
                found.update(shape for shape in shapes if shape is not None)
        return found

    def _is_transposed(self, node: int) -> bool:
        """Return whether an operator was called by a transposed convolution, or is its backward."""
        while node != NO_NODE:
            frame = int(self._tree.frame[node])
            if self._is_operator[frame] and self._of_frame(frame)[0].startswith(_TRANSPOSED):
                return True
            if not self._is_operator[frame] and self._frames.kind[frame] == FrameKind.PYTHON:
                return False
            node = int(self._tree.parent[node])
        return False
