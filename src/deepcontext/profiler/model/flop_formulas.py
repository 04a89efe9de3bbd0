"""Floating-point operations of one call of an operator, from the shapes in its recorded name (``--shapes``).

Products, attention and recurrent layers; convolutions need more than their inputs' shapes
(`flops.py`). A multiplication and an addition count as two. Pointwise operators, normalisations,
reductions and optimizers count as zero, the usual convention for comparing a model's arithmetic
with a device's peak.

Source: the definitions of `torch.utils.flop_counter`, with which the tests compare every formula.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from deepcontext.profiler.model.operator_inputs import Shape, Shapes

# The forward has two products. The backward has five of the same size; one computes the scores
# again.
_ATTENTION_BACKWARD: Final = 5


def flops(name: str, shapes: Shapes) -> int | None:
    """Return the floating-point operations of a call; None if they do not follow from the shapes.

    Args:
        name: one of `FORMULAS`.
        shapes: of the tensors among the operator's inputs, in order.
    """
    try:
        return FORMULAS[name](shapes)
    except (TypeError, ValueError, IndexError):  # a shape that is not known, or of another rank
        return None


def convolution_flops(weight: Shape, batch: int, positions: Shape) -> int:
    """Return the floating-point operations of a convolution, or of one half of its backward.

    Args:
        weight: shape of the weights.
        batch: number of samples.
        positions: sizes of the output without batch and channels; of the input if it is transposed.
    """
    return 2 * batch * prod(positions) * prod(weight)


def _product(first: int) -> Callable[[Shapes], int]:
    """Count a product of two matrices, or of two batches of matrices, which begin at input `first`."""

    def count(shapes: Shapes) -> int:
        *batch, rows, inner = _known(shapes[first])
        columns = _known(shapes[first + 1])[-1]
        return 2 * prod(batch) * rows * inner * columns

    return count


def _matrix_vector(first: int) -> Callable[[Shapes], int]:
    def count(shapes: Shapes) -> int:
        rows, inner = _known(shapes[first])
        return 2 * rows * inner

    return count


def _dot(shapes: Shapes) -> int:
    return 2 * prod(_known(shapes[0]))


def _linear(shapes: Shapes) -> int:
    return 2 * prod(_known(shapes[0])) * _known(shapes[1])[0]


def _attention(shapes: Shapes) -> int:
    return sum(_products_of_attention(shapes))


def _attention_backward(shapes: Shapes) -> int:
    """Count the products of the backward; its first input is the output's gradient."""
    scores, values = _products_of_attention(shapes[1:])
    # Scores again, gradients of queries and keys; gradients of scores and values.
    return 3 * scores + (_ATTENTION_BACKWARD - 3) * values


def _products_of_attention(shapes: Shapes) -> tuple[int, int]:
    """Return the operations of queries with keys, and of scores with values; causal or not."""
    *batch, queries, width = _known(shapes[0])
    keys = _known(shapes[1])[-2]
    value_width = _known(shapes[2])[-1]
    pairs = 2 * prod(batch) * queries * keys
    return pairs * width, pairs * value_width


def _recurrent_layer(shapes: Shapes) -> int:
    """Count one layer of a recurrent network; inputs have shape (time, batch, features)."""
    time, batch, _ = _known(shapes[0])
    return 2 * time * batch * (prod(_known(shapes[1])) + prod(_known(shapes[2])))


def _recurrent_layer_backward(shapes: Shapes) -> int:
    return 2 * _recurrent_layer(shapes)


def _known(shape: Shape | None) -> Shape:
    if shape is None:
        raise ValueError("a shape that was not recorded")
    return shape


_FUSED_ATTENTION: Final = tuple(
    f"aten::_scaled_dot_product_{kind}"
    for kind in (
        "flash_attention",
        "flash_attention_for_cpu",
        "efficient_attention",
        "cudnn_attention",
        "fused_attention_overrideable",
    )
)
# By the operator's name. If operators call each other, only the outermost counts.
FORMULAS: Final[dict[str, Callable[[Shapes], int]]] = {
    "aten::mm": _product(0),
    "aten::bmm": _product(0),
    "aten::_scaled_mm": _product(0),
    "aten::_int_mm": _product(0),
    "aten::addmm": _product(1),
    "aten::baddbmm": _product(1),
    "aten::addbmm": _product(1),
    "aten::_addmm_activation": _product(1),
    "aten::mv": _matrix_vector(0),
    "aten::addmv": _matrix_vector(1),
    "aten::dot": _dot,
    "aten::vdot": _dot,
    "aten::mkldnn_linear": _linear,
    "mkldnn::_linear_pointwise": _linear,
    **dict.fromkeys(_FUSED_ATTENTION, _attention),
    **{f"{name}_backward": _attention_backward for name in _FUSED_ATTENTION},
    "aten::mkldnn_rnn_layer": _recurrent_layer,
    "aten::mkldnn_rnn_layer_backward": _recurrent_layer_backward,
}
# Operators that multiply matrices whose sizes do not follow from the shapes of the inputs.
WITHOUT_FORMULA: Final = frozenset({
    "aten::_cudnn_rnn",
    "aten::_cudnn_rnn_backward",
    "aten::miopen_rnn",
    "aten::miopen_rnn_backward",
    "aten::_sparse_mm",
    "aten::_grouped_mm",
    "aten::_scaled_grouped_mm",
    "mkl::_mkl_linear",
})
