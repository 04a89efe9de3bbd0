"""Floating-point operations of the operators in a tree, where names hold the shapes of inputs (``--shapes``).

Derived when a caller asks, never stored.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.profiler.format.metric import FLOPS
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
from deepcontext.profiler.model.metric_rows import MetricRows
from deepcontext.profiler.model.recorded_operators import RecordedOperators

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from deepcontext.profiler.model.frame_table import FrameTable
    from deepcontext.profiler.model.tree import Tree

    Ints = npt.NDArray[np.int64]
    Floats = npt.NDArray[np.float64]

_COUNTED: Final = frozenset({CONVOLUTION_BACKWARD, *CONVOLUTIONS, *FORMULAS, *WITHOUT_FORMULA})


@dataclass(frozen=True, slots=True, eq=False)
class OperatorFlops:
    """Floating-point operations by node.

    Attributes:
        nodes: the counted operators, ascending, shape (operators,), int64.
        a_call: floating-point operations of one call of each, shape (operators,), float64.
        calls: number of calls of each, shape (operators,), int64.
        types: element type of the numbers that each one multiplies, "" where it was not recorded.
        unknown: calls of operators that multiply matrices of unknown sizes, by name.
    """

    nodes: Ints
    a_call: Floats
    calls: Ints
    types: tuple[str, ...]
    unknown: Mapping[str, int]

    @property
    def values(self) -> Floats:
        """Floating-point operations of each operator in the whole run, shape (operators,), float64."""
        return self.a_call * self.calls


def flops_rows(frames: FrameTable, tree: Tree, calls: MetricRows) -> MetricRows:
    """Return the rows of `FLOPS`; none where their sum does not fit 64 bits.

    Args:
        frames: the distinct frames.
        tree: the nodes.
        calls: rows of `CALL_DURATION_NS`.
    """
    found = operator_flops(frames, tree, calls)
    return MetricRows.of_derived(FLOPS, found.nodes, found.calls, found.values)


def operator_flops(frames: FrameTable, tree: Tree, calls: MetricRows) -> OperatorFlops:
    """Return the floating-point operations of each operator; arguments as of `flops_rows`."""
    operators = RecordedOperators(frames, tree)
    convolutions = Convolutions(operators)
    count = np.zeros(len(tree), np.int64)
    count[calls.node] = calls.count
    nodes, values, types = [], [], []
    unknown: Counter[str] = Counter()
    for node in operators.counted(_COUNTED).tolist():
        value = _flops(operators, convolutions, node)
        if value is None:
            unknown[operators.name(node)] += int(count[node])
        else:
            nodes.append(node)
            values.append(float(value))
            types.append(operators.inputs(node).type)
    index = np.array(nodes, np.int64)
    return OperatorFlops(
        index, np.array(values, np.float64), count[index], tuple(types), dict(unknown)
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
