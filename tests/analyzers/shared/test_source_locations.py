"""Descriptions of source locations that several analyzers use."""

from __future__ import annotations

import pytest

from deepcontext.analyzers.shared import source_locations


@pytest.mark.parametrize(
    ("function", "advice"),
    [
        ("step", "put @jax.jit on 'step'"),
        ("Net.forward", "put @jax.jit on 'Net.forward'"),
        ("main.<locals>.step", "put @jax.jit on 'main.<locals>.step'"),
        ("<module>", "make these lines a function and put @jax.jit on it"),
        ("main.<locals>.<lambda>", "make these lines a function and put @jax.jit on it"),
    ],
)
def test_a_decorator_is_advised_only_for_a_function(function: str, advice: str) -> None:
    assert source_locations.decorate("@jax.jit", function) == advice


COPY = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, "
    "std::array<char*, 1ul> >(int, at::native::FillFunctor<float>, std::array<char*, 1ul>)"
)
PRODUCT = "cutlass_75_tensorop_bf16_s1688gemm_bf16_128x128_tn_align1"
NORM = "void at::native::(anonymous namespace)::layer_norm<float, float>(int, float const*)"
OTHER = "nvjet_sm90_tst_192x128_64x5_1x2_h_bz_coopB_NNT"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        (COPY, "native::vectorized_elementwise_kernel"),
        (f"void cutlass::Kernel2<{PRODUCT}>({PRODUCT}::Params)", PRODUCT),
        (NORM, "native::layer_norm"),
        (OTHER, OTHER),
        ("", ""),
    ],
)
def test_kernels_are_named_without_types(name: str, shown: str) -> None:
    assert source_locations.kernel_name(name) == shown
