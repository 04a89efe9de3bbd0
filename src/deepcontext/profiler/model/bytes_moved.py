"""Bytes that the operators in a tree read and write, where names hold shapes and types (``--shapes``).

Derived when a caller asks, never stored; lower bounds (`byte_formulas.py`). An operator whose bytes are not
known is named, with its calls, and is never guessed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.profiler.format.metric import BYTES_MOVED
from deepcontext.profiler.model.byte_formulas import (
    FORMULAS,
    MOVE_NOTHING,
    bytes_moved,
    size_bytes,
)
from deepcontext.profiler.model.convolutions import (
    CONVOLUTION_BACKWARD,
    CONVOLUTIONS,
    Convolutions,
)
from deepcontext.profiler.model.metric_rows import MetricRows
from deepcontext.profiler.model.recorded_operators import RecordedOperators

if TYPE_CHECKING:
    import numpy.typing as npt

    from deepcontext.profiler.model.frame_table import FrameTable
    from deepcontext.profiler.model.operator_inputs import Shape
    from deepcontext.profiler.model.tree import Tree

    Ints = npt.NDArray[np.int64]
    Floats = npt.NDArray[np.float64]

_COUNTED: Final = frozenset({CONVOLUTION_BACKWARD, *CONVOLUTIONS, *FORMULAS})
# Slices of three inputs of a convolution's backward: gradient, image, weight. Further ones are settings.
_OF_BACKWARD: Final = 3


@dataclass(frozen=True, slots=True, eq=False)
class OperatorBytes:
    """Bytes read and written by node.

    Attributes:
        nodes: the counted operators, ascending, shape (operators,), int64.
        a_call: bytes of one call of each, shape (operators,), float64.
        calls: number of calls of each, shape (operators,), int64.
        types: element type of each one's first tensor.
        unknown: operators that may move data and have no formula, or inputs that do not tell, ascending,
            shape (unknown operators,), int64. None lies in another or in a counted one.
    """

    nodes: Ints
    a_call: Floats
    calls: Ints
    types: tuple[str, ...]
    unknown: Ints

    @property
    def values(self) -> Floats:
        """Bytes of each operator in the whole run, shape (operators,), float64."""
        return self.a_call * self.calls


def bytes_rows(frames: FrameTable, tree: Tree, calls: MetricRows) -> MetricRows:
    """Return the rows of `BYTES_MOVED`; none where their sum does not fit 64 bits.

    Args:
        frames: the distinct frames.
        tree: the nodes.
        calls: rows of `CALL_DURATION_NS`.
    """
    found = operator_bytes(frames, tree, calls)
    return MetricRows.of_derived(BYTES_MOVED, found.nodes, found.calls, found.values)


def operator_bytes(frames: FrameTable, tree: Tree, calls: MetricRows) -> OperatorBytes:
    """Return the bytes that each operator moves; arguments as of `bytes_rows`."""
    operators = RecordedOperators(frames, tree)
    convolutions = Convolutions(operators)
    count = np.zeros(len(tree), np.int64)
    count[calls.node] = calls.count
    counted = operators.counted(_COUNTED)
    nodes, values, unknown = [], [], []
    for node in counted.tolist():
        value = _bytes(operators, convolutions, node)
        if value is None:
            unknown.append(node)
        else:
            nodes.append(node)
            values.append(float(value))
    leaves = operators.leaves()
    if len(counted):
        leaves = leaves[~operators.inside(counted)[leaves]]
    unknown += [each for each in leaves.tolist() if operators.name(each) not in MOVE_NOTHING]
    index = np.array(nodes, np.int64)
    return OperatorBytes(
        index,
        np.array(values, np.float64),
        count[index],
        tuple(operators.inputs(node).type for node in nodes),
        np.array(sorted(unknown), np.int64),
    )


def _bytes(operators: RecordedOperators, convolutions: Convolutions, node: int) -> int | None:
    """Return the bytes of one call, None if they are not known."""
    name = operators.name(node)
    if name in CONVOLUTIONS:
        return _convolution(operators, convolutions, node)
    if name == CONVOLUTION_BACKWARD:
        return _convolution_backward(operators, convolutions, node)
    return bytes_moved(name, operators.inputs(node))


def _convolution(operators: RecordedOperators, convolutions: Convolutions, node: int) -> int | None:
    inputs = operators.inputs(node)
    return _sum(inputs.type, (*inputs.shapes, convolutions.output(node)))


def _convolution_backward(
    operators: RecordedOperators, convolutions: Convolutions, node: int
) -> int | None:
    inputs = operators.inputs(node)
    gradients = convolutions.gradients(node)
    if not gradients:
        return None
    return _sum(inputs.type, (*inputs.shapes[:_OF_BACKWARD], *gradients))


def _sum(kind: str, shapes: tuple[Shape | None, ...]) -> int | None:
    """Return the bytes of tensors of one type, None where a shape or the type is not known."""
    sizes = [None if shape is None else size_bytes(shape, kind) for shape in shapes]
    known = [size for size in sizes if size is not None]
    return sum(known) if len(known) == len(sizes) else None
