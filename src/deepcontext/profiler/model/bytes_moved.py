"""Bytes that the operators in a tree read and write, where names hold shapes and types (``--shapes``).

Derived when a caller asks, never stored; lower bounds (`byte_formulas.py`). An operator whose bytes are not
known is named, with its calls, and is never guessed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

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
from deepcontext.profiler.model.recorded_operators import RecordedOperators

if TYPE_CHECKING:
    from deepcontext.profiler.model.frame_table import FrameTable
    from deepcontext.profiler.model.metric_rows import MetricRows
    from deepcontext.profiler.model.operator_inputs import Shape
    from deepcontext.profiler.model.recorded_operators import CountedOperators
    from deepcontext.profiler.model.tree import Tree

_COUNTED: Final = frozenset({CONVOLUTION_BACKWARD, *CONVOLUTIONS, *FORMULAS})
# Slices of three inputs of a convolution's backward: gradient, image, weight. Further ones are settings.
_OF_BACKWARD: Final = 3


def operator_bytes(frames: FrameTable, tree: Tree, calls: MetricRows) -> CountedOperators:
    """Return the bytes that each operator reads and writes.

    Unknown are operators that may move data and have no formula, or inputs that do not say enough; none
    lies in another or in a counted one.

    Args:
        frames: the distinct frames.
        tree: the nodes.
        calls: rows of `CALL_DURATION_NS`.
    """
    operators = RecordedOperators(frames, tree)
    convolutions = Convolutions(operators)
    counted = operators.counted(_COUNTED)
    found = operators.count(counted, lambda node: _bytes(operators, convolutions, node), calls)
    leaves = operators.leaves()
    if len(counted):
        leaves = leaves[~operators.inside(counted)[leaves]]
    others = [each for each in leaves.tolist() if operators.name(each) not in MOVE_NOTHING]
    return replace(found, unknown=np.sort(np.append(found.unknown, np.array(others, np.int64))))


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
