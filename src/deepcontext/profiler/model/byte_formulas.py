"""Bytes that one call of an operator reads and writes, from the shapes and types in its recorded name.

A lower bound: each tensor among the inputs is read once, each result is written once. What a kernel reads
again, converts in between or keeps for the backward in small tensors is not counted. A number is whole
bytes; operators in no table here are not known. Convolutions need more than their inputs (`bytes_moved.py`).

============ ======================================== ==================================================
family       read                                     written
============ ======================================== ==================================================
pointwise    each input                               the inputs' broadcast shape, of the type that they
                                                      promote to
in place     each input                               the first input
reductions   each input                               nothing: the size of the result is not recorded
fill, draw   nothing                                  the first input
copies       the second input                         the first input
products     each input                               rows times columns
attention    each input; no scores                    a result as long as the queries
its backward each input                               three gradients
norms        each input                               one of the first input's shape
embedding    indices, and the rows that they choose   these rows
recurrent    each input                               the output of all times
============ ======================================== ==================================================

Overcounted are dimensions that `expand` made, whose elements share memory (strides are not recorded), and a
tensor that is passed twice.
"""

from __future__ import annotations

from itertools import zip_longest
from math import prod
from typing import TYPE_CHECKING, Final

from deepcontext.profiler.model.operator_inputs import SIZES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from deepcontext.profiler.model.operator_inputs import Inputs, Shape

    Formula = Callable[["Operands"], int]


class Operands:
    """Inputs whose shape and type must be known; asking for others is a `ValueError`."""

    def __init__(self, inputs: Inputs) -> None:
        self._inputs = inputs

    def __len__(self) -> int:
        return len(self._inputs.shapes)

    def shape(self, index: int) -> Shape:
        """Return the sizes of an input."""
        found = self._inputs.shapes[index]
        if found is None:
            raise ValueError("a shape that was not recorded")
        return found

    def kind(self, index: int) -> str:
        """Return the type of an input's elements."""
        return self._inputs.types[index]

    def element(self, index: int) -> int:
        """Return the bytes of one element of an input."""
        if self.kind(index) not in SIZES:
            raise ValueError("a type that was not recorded")
        return SIZES[self.kind(index)]

    def size(self, index: int) -> int:
        """Return the bytes of an input; an absent one is recorded as `[0]`, without a type."""
        elements = prod(self.shape(index))
        return elements and elements * self.element(index)

    def sizes(self, most: int | None = None) -> int:
        """Return the bytes of all inputs, or of the first ones: further ones are results (``out=``)."""
        return sum(self.size(index) for index in range(len(self))[:most])


def bytes_moved(name: str, inputs: Inputs) -> int | None:
    """Return the bytes that a call reads and writes; None if these inputs do not tell.

    Args:
        name: one of `FORMULAS`.
        inputs: shapes and types of the tensors among the operator's inputs.
    """
    try:
        return FORMULAS[name](Operands(inputs))
    except (ValueError, IndexError, ZeroDivisionError):  # not known, of another rank, or empty
        return None


def size_bytes(shape: Shape, kind: str) -> int | None:
    """Return the bytes of a tensor, None for a type that is not known."""
    return prod(shape) * SIZES[kind] if kind in SIZES else None


def _pointwise(arity: int, result: str = "") -> Formula:
    """Count an operator of as many tensors; `result` is its type where it is not that of the inputs."""

    def count(operands: Operands) -> int:
        used = range(min(arity, len(operands)))
        elements = prod(_broadcast([operands.shape(index) for index in used]))
        return operands.sizes(arity) + elements * SIZES[result or _promoted(operands, used)]

    return count


def _broadcast(shapes: Sequence[Shape]) -> Shape:
    if not shapes:
        raise ValueError("no tensor among the inputs")
    columns = zip_longest(*(reversed(shape) for shape in shapes), fillvalue=1)
    return tuple(next((size for size in sizes if size != 1), 1) for sizes in columns)


def _promoted(operands: Operands, used: range) -> str:
    """Return the type that inputs promote to; single numbers do not widen tensors of their kind.

    Source: https://docs.pytorch.org/docs/stable/tensor_attributes.html, "torch.dtype".
    """
    tensors = [operands.kind(each) for each in used if operands.shape(each)]
    numbers = [operands.kind(each) for each in used if not operands.shape(each)]
    best, least = _widest(tensors or numbers), _widest(numbers) if numbers else ""
    if not tensors or not least or _category(best) >= _category(least):
        return best
    return "f32" if _category(least) == _FLOAT else least


def _widest(kinds: Sequence[str]) -> str:
    top = max(map(_category, kinds))
    widest = sorted({kind for kind in kinds if _category(kind) == top}, key=SIZES.__getitem__)
    return (
        "f32"
        if {"f16", "bf16"} <= set(widest) and SIZES[widest[-1]] == SIZES["f16"]
        else widest[-1]
    )


_FLOAT: Final = 2


def _category(kind: str) -> int:
    """Return a number that orders bool, integers, floating-point and complex numbers."""
    if kind == "bool":
        return 0
    return {"i": 1, "u": 1, "f": _FLOAT, "b": _FLOAT, "c": 3}[kind[0]]


def _where(operands: Operands) -> int:
    """Count a choice between two tensors; its first input is the condition."""
    used = range(min(3, len(operands)))
    elements = prod(_broadcast([operands.shape(index) for index in used]))
    return operands.sizes(3) + elements * SIZES[_promoted(operands, used[1:])]


def _masked_fill_in_place(operands: Operands) -> int:
    return operands.size(0) + operands.size(1)  # the mask is read, the tensor is written


def _in_place(arity: int) -> Formula:
    return lambda operands: operands.sizes(arity) + operands.size(0)


def _reads(arity: int | None = None) -> Formula:
    """Count an operator whose result is small, or of a size that its inputs do not tell."""
    return lambda operands: operands.sizes(arity)


def _writes(operands: Operands) -> int:
    return operands.size(0)


def _copies(operands: Operands) -> int:
    return operands.size(0) + operands.size(1)


def _extreme(operands: Operands) -> int:
    """Count `max` and `min`: of one tensor a reduction, of two pointwise."""
    return _reads()(operands) if len(operands) == 1 else _pointwise(2)(operands)


def _like(index: int) -> Formula:
    """Count an operator that reads all inputs and writes one tensor like one of them."""
    return lambda operands: operands.sizes() + operands.size(index)


def _dropout(operands: Operands) -> int:
    return 2 * operands.size(0) + prod(operands.shape(0))  # with a mask of single bytes


def _product(first: int) -> Formula:
    """Count a product of two (batches of) matrices, which begin at input `first`."""

    def count(operands: Operands) -> int:
        *batch, rows, _ = operands.shape(first)
        columns = operands.shape(first + 1)[-1]
        return operands.sizes(first + 2) + prod(batch) * rows * columns * operands.element(first)

    return count


def _sum_of_products(operands: Operands) -> int:
    """Count `addbmm`, which adds up the products of a batch."""
    _, rows, _ = operands.shape(1)
    columns = operands.shape(2)[-1]
    return operands.sizes(3) + rows * columns * operands.element(1)


def _matrix_vector(first: int) -> Formula:
    def count(operands: Operands) -> int:
        rows, _ = operands.shape(first)
        return operands.sizes(first + 2) + rows * operands.element(first)

    return count


def _linear(operands: Operands) -> int:
    outputs = prod(operands.shape(0)[:-1]) * operands.shape(1)[0]
    return operands.sizes(3) + outputs * operands.element(0)


def _attention(operands: Operands) -> int:
    outputs = prod(operands.shape(0)[:-1]) * operands.shape(2)[-1]
    return operands.sizes() + outputs * operands.element(0)


def _attention_backward(operands: Operands) -> int:
    """Count the backward, whose inputs begin with gradient, queries, keys and values."""
    return operands.sizes() + sum(operands.size(index) for index in (1, 2, 3))


def _recurrent_layer(operands: Operands) -> int:
    """Count one layer; its inputs begin with (time, batch, features) and two weights."""
    time, batch, _ = operands.shape(0)
    hidden = operands.shape(2)[-1]
    return operands.sizes() + time * batch * hidden * operands.element(0)


def _recurrent_layer_backward(operands: Operands) -> int:
    return operands.sizes() + sum(operands.size(index) for index in range(3))


def _embedding(operands: Operands) -> int:
    rows = prod(operands.shape(1)) * operands.shape(0)[-1] * operands.element(0)
    return operands.size(1) + 2 * rows


def _embedding_bag(operands: Operands) -> int:
    width = operands.shape(0)[-1] * operands.element(0)
    bags = operands.shape(2)[0]
    return operands.size(1) + operands.size(2) + (prod(operands.shape(1)) + bags) * width


def _gather(operands: Operands) -> int:
    return operands.size(1) + 2 * prod(operands.shape(1)) * operands.element(0)


def _index_select(operands: Operands) -> int:
    """Count slices along one dimension; of unknown dimension, hence the smallest slices."""
    slices = min(operands.size(0) // size for size in operands.shape(0))
    return operands.size(1) + 2 * prod(operands.shape(1)) * slices


def _scatter(operands: Operands) -> int:
    """Count the source, read, and as many elements of the first input, written."""
    return operands.size(1) + 2 * prod(operands.shape(1)) * operands.element(0)


def _loss_by_class(operands: Operands) -> int:
    return operands.size(1) + prod(operands.shape(1)) * operands.element(0)


def _loss_by_class_backward(operands: Operands) -> int:
    return operands.size(2) + operands.size(1)


def _names(words: str, beginning: str = "aten::") -> list[str]:
    return [beginning + word for word in words.split()]


# Functions of real numbers that make floating-point results of integers, which are rare.
_UNARY: Final = """
    abs neg exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal sin cos tan tanh sinh cosh
    asin acos atan sigmoid log_sigmoid_forward erf erfc erfinv relu leaky_relu elu celu selu
    gelu silu mish softplus hardtanh hardswish hardsigmoid threshold clamp_min clamp_max round
    floor ceil trunc frac sign sgn nan_to_num square cumsum cumprod bitwise_not tril triu flip
    roll _softmax _log_softmax
"""
_BINARY: Final = """
    add sub rsub mul div true_divide floor_divide remainder fmod pow atan2 maximum minimum fmax
    fmin hypot bitwise_and bitwise_or bitwise_xor __and__ __or__ __xor__ _prelu_kernel
    threshold_backward gelu_backward silu_backward sigmoid_backward tanh_backward
    leaky_relu_backward elu_backward hardtanh_backward hardswish_backward hardsigmoid_backward
    softplus_backward mish_backward _softmax_backward_data _log_softmax_backward_data
    native_dropout_backward
"""
_TERNARY: Final = """
    addcmul addcdiv lerp clamp masked_fill log_sigmoid_backward mse_loss_backward
    smooth_l1_loss_backward huber_loss_backward binary_cross_entropy_backward
"""
_COMPARISONS: Final = "eq ne lt le gt ge logical_and logical_or logical_xor"
_TESTS: Final = "isnan isinf isfinite logical_not"
_REDUCTIONS: Final = """
    sum mean prod amax amin argmax argmin all any norm linalg_vector_norm var std var_mean
    std_mean logsumexp nansum count_nonzero mse_loss l1_loss smooth_l1_loss huber_loss
    binary_cross_entropy max_pool2d_with_indices max_pool3d_with_indices avg_pool1d avg_pool2d
    avg_pool3d _adaptive_avg_pool2d _adaptive_avg_pool3d adaptive_max_pool2d
"""
_WRITES: Final = (
    "fill_ zero_ normal_ uniform_ bernoulli_ random_ exponential_ log_normal_ geometric_ cauchy_"
)
_NORMS: Final = """
    native_layer_norm native_layer_norm_backward native_group_norm native_group_norm_backward
    native_batch_norm native_batch_norm_backward _native_batch_norm_legit
    _native_batch_norm_legit_no_training _batch_norm_with_update _batch_norm_no_update
    cudnn_batch_norm cudnn_batch_norm_backward miopen_batch_norm miopen_batch_norm_backward
    _fused_rms_norm _fused_rms_norm_backward
"""
_POOL_BACKWARDS: Final = """
    max_pool2d_with_indices_backward max_pool3d_with_indices_backward avg_pool2d_backward
    avg_pool3d_backward _adaptive_avg_pool2d_backward _adaptive_avg_pool3d_backward
    adaptive_max_pool2d_backward
"""
_FUSED_ATTENTION: Final = """
    _scaled_dot_product_flash_attention _scaled_dot_product_flash_attention_for_cpu
    _scaled_dot_product_efficient_attention _scaled_dot_product_cudnn_attention
    _scaled_dot_product_fused_attention_overrideable
"""
_POINTWISE: Final = {
    **dict.fromkeys(_names(_UNARY), 1),
    **dict.fromkeys(_names(_BINARY), 2),
    **dict.fromkeys(_names(_TERNARY), 3),
}
# By the operator's name. Of operators that call each other, only the outermost counts.
FORMULAS: Final[dict[str, Formula]] = {
    **{name: _pointwise(arity) for name, arity in _POINTWISE.items()},
    **{f"{name}_": _in_place(arity) for name, arity in _POINTWISE.items()},
    **dict.fromkeys(_names(_COMPARISONS), _pointwise(2, "bool")),
    **dict.fromkeys(_names(_TESTS), _pointwise(1, "bool")),
    **dict.fromkeys(_names(_REDUCTIONS), _reads()),
    **dict.fromkeys(_names(_WRITES), _writes),
    **dict.fromkeys(_names(_NORMS), _like(0)),
    # Gradient and indices are read, one like the input is written.
    **dict.fromkeys(_names(_POOL_BACKWARDS), _reads()),
    **dict.fromkeys(_names(_FUSED_ATTENTION), _attention),
    **{f"{name}_backward": _attention_backward for name in _names(_FUSED_ATTENTION)},
    **dict.fromkeys(_names("max min"), _extreme),
    **dict.fromkeys(_names("mm bmm _scaled_mm _int_mm"), _product(0)),
    **dict.fromkeys(_names("addmm baddbmm _addmm_activation"), _product(1)),
    "aten::addbmm": _sum_of_products,
    "aten::mv": _matrix_vector(0),
    "aten::addmv": _matrix_vector(1),
    **dict.fromkeys(_names("dot vdot"), _reads(2)),
    **dict.fromkeys(("aten::mkldnn_linear", "mkldnn::_linear_pointwise"), _linear),
    "aten::mkldnn_rnn_layer": _recurrent_layer,
    "aten::mkldnn_rnn_layer_backward": _recurrent_layer_backward,
    "aten::where": _where,
    "aten::masked_fill_": _masked_fill_in_place,
    "aten::copy_": _copies,
    "aten::native_dropout": _dropout,
    "aten::embedding": _embedding,
    "aten::_embedding_bag": _embedding_bag,
    "aten::_embedding_bag_forward_only": _embedding_bag,
    "aten::gather": _gather,
    "aten::index_select": _index_select,
    **dict.fromkeys(_names("scatter_ scatter_add_"), _scatter),
    **dict.fromkeys(_names("nll_loss_forward nll_loss2d_forward"), _loss_by_class),
    **dict.fromkeys(_names("nll_loss_backward nll_loss2d_backward"), _loss_by_class_backward),
}
# These move no elements: they describe the same memory in another way, or only reserve memory.
MOVE_NOTHING: Final = frozenset(
    _names("""
    view _unsafe_view view_as reshape _reshape_alias t transpose transpose_ permute expand
    expand_as as_strided as_strided_ slice select narrow unsqueeze unsqueeze_ squeeze squeeze_
    detach detach_ alias split split_with_sizes unsafe_split chunk unbind unfold diagonal
    flatten movedim swapaxes numpy_T mT mH view_as_real view_as_complex real imag lift_fresh
    resolve_conj resolve_neg conj _conj empty empty_like empty_strided new_empty
    new_empty_strided resize_ set_ is_nonzero item _local_scalar_dense result_type can_cast size
    stride is_same_size to contiguous type_as requires_grad_ broadcast_tensors unsafe_chunk
    tensor_split dropout
    """)
) | {"torch::autograd::AccumulateGrad", "detach", "detach_"}  # as autograd records them
