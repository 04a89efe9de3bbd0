"""Names of operators by their function, for the analyzers.

Does not select nodes (`source_locations.py`). Names are ATen's, without shapes; an operator
in no list is counted like any other, but not recognised.
"""

from __future__ import annotations

from typing import Final

# Multiply and add, which the hardware does best. Source: the operators of torch.utils.flop_counter.
DENSE: Final = frozenset(
    f"aten::{name}"
    for name in [
        "mm",
        "addmm",
        "bmm",
        "baddbmm",
        "addbmm",
        "matmul",
        "linear",
        "dot",
        "mv",
        "addmv",
        "addmm_",
        "baddbmm_",
        "addbmm_",
        "addmv_",
        "einsum",
        "conv1d",
        "conv2d",
        "conv3d",
        "conv_transpose1d",
        "conv_transpose2d",
        "conv_transpose3d",
        "convolution",
        "_convolution",
        "convolution_backward",
        "mkldnn_convolution",
        "mkldnn_linear",
        "thnn_conv2d",
        "_slow_conv2d_forward",
        "_slow_conv2d_backward",
        "cudnn_convolution",
        "miopen_convolution",
        "scaled_dot_product_attention",
        "_scaled_dot_product_flash_attention",
        "_scaled_dot_product_flash_attention_for_cpu",
        "_scaled_dot_product_flash_attention_for_cpu_backward",
        "_scaled_dot_product_efficient_attention",
        "_flash_attention_forward",
        "lstm",
        "gru",
        "mkldnn_rnn_layer",
        "mkldnn_rnn_layer_backward",
        "_thnn_fused_lstm_cell",
        "_addmm_activation",
        "_transformer_encoder_layer_fwd",
        "_native_multi_head_attention",
    ]
)
MATRIX_PRODUCTS: Final = frozenset(
    f"aten::{name}" for name in ["matmul", "bmm", "baddbmm", "einsum", "mm"]
)
# Their backward is two products of the same size, which cannot be avoided.
PRODUCTS: Final = MATRIX_PRODUCTS | frozenset(
    f"aten::{name}" for name in ["addmm", "addbmm", "linear", "dot", "mv", "addmv"]
)
SOFTMAX: Final = frozenset({"aten::softmax", "aten::_softmax", "aten::_safe_softmax"})
FUSED_ATTENTION: Final = "aten::scaled_dot_product_attention"
# Products and a softmax below this operator are torch's implementation of a whole layer.
NATIVE_ATTENTION: Final = "aten::_native_multi_head_attention"
# One result element from one element of each operand, or a reduction; a compiler fuses chains of them.
_POINTWISE: Final = [
    "add",
    "sub",
    "rsub",
    "mul",
    "div",
    "true_divide",
    "floor_divide",
    "remainder",
    "pow",
    "square",
    "sqrt",
    "rsqrt",
    "reciprocal",
    "neg",
    "abs",
    "sign",
    "exp",
    "exp2",
    "expm1",
    "log",
    "log2",
    "log1p",
    "sin",
    "cos",
    "tan",
    "tanh",
    "sinh",
    "cosh",
    "sigmoid",
    "logsigmoid",
    "log_sigmoid_forward",
    "erf",
    "erfc",
    "relu",
    "leaky_relu",
    "elu",
    "celu",
    "selu",
    "gelu",
    "silu",
    "mish",
    "softplus",
    "hardtanh",
    "hardswish",
    "hardsigmoid",
    "threshold",
    "where",
    "clamp",
    "clamp_min",
    "clamp_max",
    "minimum",
    "maximum",
    "lerp",
    "addcmul",
    "addcdiv",
    "masked_fill",
    "fill",
    "zero",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "logical_and",
    "logical_or",
    "logical_not",
    "bitwise_and",
    "bitwise_or",
    "bitwise_not",
    "isnan",
    "isinf",
    "isfinite",
    "nan_to_num",
    "dropout",
    "native_dropout",
    "bernoulli",
    "softmax",
    "log_softmax",
    "logsumexp",
    "sum",
    "mean",
    "var",
    "std",
    "var_mean",
    "std_mean",
    "norm",
    "amax",
    "amin",
    "linalg_vector_norm",
    "cumsum",
    "gather",
]
POINTWISE: Final = frozenset(f"aten::{name}{ending}" for name in _POINTWISE for ending in ("", "_"))
# Few results of many elements.
REDUCTIONS: Final = frozenset(
    f"aten::{name}"
    for name in [
        "norm",
        "linalg_vector_norm",
        "sum",
        "mean",
        "var",
        "std",
        "max",
        "min",
        "amax",
        "amin",
        "prod",
        "any",
        "all",
        "count_nonzero",
    ]
)
# Read the value of a tensor with one element.
READS_ELEMENT: Final = frozenset({"aten::item", "aten::is_nonzero", "aten::_local_scalar_dense"})
# The host reads a value that is on the device: it must wait for all work queued before.
READS_VALUE: Final = frozenset(
    f"aten::{name}"
    for name in [
        "item",
        "is_nonzero",
        "_local_scalar_dense",
        "nonzero",
        "nonzero_numpy",
        "equal",
        "unique_dim",
        "_unique2",
        "unique_consecutive",
        "masked_select",
        "repeat_interleave",
    ]
)
# These operators call `nonzero` to find the positions in a mask.
INDEX_BY_MASK: Final = frozenset({"aten::index", "aten::index_put_", "aten::_index_put_impl_"})
MAKES_INDICES: Final = frozenset({"aten::randint", "aten::randperm"})
# Draw samples from computed values; dropout has separate operators.
DRAWS: Final = frozenset({"aten::multinomial", "aten::bernoulli", "aten::normal", "aten::poisson"})
COPIES: Final = frozenset(
    f"aten::{name}" for name in ["to", "_to_copy", "contiguous", "clone", "copy_", "pin_memory"]
)
# Factorise matrices, or solve with them: rounding in float32 fails them or spoils their results.
FACTORISATIONS: Final = frozenset(
    f"aten::{name}"
    for name in (
        "linalg_cholesky_ex",
        "cholesky_solve",
        "linalg_solve_triangular",
        "triangular_solve",
        "linalg_lu_factor_ex",
        "linalg_ldl_factor_ex",
        "_linalg_solve_ex",
        "_linalg_eigh",
        "linalg_eig",
        "_linalg_svd",
        "linalg_qr",
        "linalg_inv_ex",
        "linalg_lstsq",
        "_linalg_slogdet",
    )
)
# Make a new tensor of all elements of other tensors.
JOINS: Final = frozenset({"aten::cat", "aten::concat", "aten::stack"})
# Hand out the parts of a tensor one after the other.
SPLITS: Final = frozenset(
    f"aten::{name}"
    for name in ("split", "split_with_sizes", "chunk", "tensor_split", "unsafe_split")
)
LOSSES: Final = frozenset(
    f"aten::{name}"
    for name in (
        "mse_loss",
        "l1_loss",
        "smooth_l1_loss",
        "huber_loss",
        "cross_entropy_loss",
        "nll_loss_nd",
        "nll_loss",
        "binary_cross_entropy",
        "binary_cross_entropy_with_logits",
        "kl_div",
        "ctc_loss",
        "poisson_nll_loss",
        "cosine_embedding_loss",
        "margin_ranking_loss",
        "triplet_margin_loss",
    )
)
DEVICE_OR_TYPE: Final = frozenset({"aten::to", "aten::_to_copy"})
EMBEDDING_BY_INDEX: Final = "aten::index"
EMBEDDING: Final = "aten::embedding"
# Stores or adds the gradient of one parameter.
ACCUMULATE_GRAD: Final = "torch::autograd::AccumulateGrad"
