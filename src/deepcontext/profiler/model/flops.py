"""Floating-point operations of the operators in a tree, where names hold the shapes of inputs (``--shapes``).

Derived when a caller asks, never stored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deepcontext.profiler.model.convolutions import (
    CONVOLUTION_BACKWARD,
    CONVOLUTIONS,
    Convolutions,
)
from deepcontext.profiler.model.flop_formulas import (
    FORMULAS,
    WITHOUT_FORMULA,
    convolution_flops,
    flops,
)
from deepcontext.profiler.model.recorded_operators import RecordedOperators

if TYPE_CHECKING:
    from deepcontext.profiler.model.frame_table import FrameTable
    from deepcontext.profiler.model.metric_rows import MetricRows
    from deepcontext.profiler.model.recorded_operators import CountedOperators
    from deepcontext.profiler.model.tree import Tree

_COUNTED: Final = frozenset({CONVOLUTION_BACKWARD, *CONVOLUTIONS, *FORMULAS, *WITHOUT_FORMULA})


def operator_flops(frames: FrameTable, tree: Tree, calls: MetricRows) -> CountedOperators:
    """Return the floating-point operations of each operator.

    Unknown are operators that multiply matrices of unknown sizes.

    Args:
        frames: the distinct frames.
        tree: the nodes.
        calls: rows of `CALL_DURATION_NS`.
    """
    operators = RecordedOperators(frames, tree)
    convolutions = Convolutions(operators)
    return operators.count(
        operators.counted(_COUNTED), lambda node: _flops(operators, convolutions, node), calls
    )


def _flops(operators: RecordedOperators, convolutions: Convolutions, node: int) -> int | None:
    """Return the floating-point operations of one call, None if they are not known."""
    name = operators.name(node)
    if name in CONVOLUTIONS:
        return _convolution(convolutions, node)
    if name == CONVOLUTION_BACKWARD:
        return _convolution_backward(operators, convolutions, node)
    return flops(name, operators.inputs(node).shapes) if name in FORMULAS else None


def _convolution(convolutions: Convolutions, node: int) -> int | None:
    operands = convolutions.operands(node)
    if operands is None:
        return None
    image, weight = operands
    shape = image if convolutions.is_transposed(node) else convolutions.output(node)
    return None if shape is None else convolution_flops(weight, image[0], shape[2:])


def _convolution_backward(
    operators: RecordedOperators, convolutions: Convolutions, node: int
) -> int | None:
    operands = convolutions.operands(node)
    gradient = operators.inputs(node).shapes[0] if operands else None
    if operands is None or gradient is None:
        return None
    image, weight = operands
    positions = image[2:] if convolutions.is_transposed(node) else gradient[2:]
    return convolution_flops(weight, image[0], positions) * len(convolutions.gradients(node))
