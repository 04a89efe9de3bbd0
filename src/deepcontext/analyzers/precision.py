"""Precision: matrix products in float32 without tensor cores.

Only the names of GPU kernels reveal types, so a profile without a GPU gives no finding.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.base import Analyzer
from deepcontext.analyzers.finding import Finding, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.model.metric_values import total
from deepcontext.profiler.model.query import Query

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

_LEAST_SHARE: Final = 0.20
# Source: cuBLAS and CUTLASS name kernels by type: sgemm and simt are float32 without tensor cores,
# dgemm is float64. rocBLAS (Tensile) writes the types after the layout: _SB_ is float32, _DB_ double.
_SINGLE: Final = ("sgemm", "simt_s", "_sb_", "s884gemm_fp32")
_DOUBLE: Final = ("dgemm", "simt_d", "_db_", "d884")
_TENSOR_CORE: Final = ("tf32", "s1688", "bf16", "f16", "fp16", "h884", "h1688", "16816", "s161616")


def _find(profile: Profile) -> list[Finding]:
    whole = source_locations.judged_total(profile, source_locations.GPU_TIME)
    if not whole:
        return []
    found = []
    for names, is_double in ((_SINGLE, False), (_DOUBLE, True)):
        kernels = source_locations.nodes_named(
            profile, FrameKind.KERNEL, functools.partial(_is_slow, names=names)
        )
        value = kernels.total(source_locations.GPU_TIME)
        if value / whole >= _LEAST_SHARE:
            nodes = kernels.nodes()
            order = (-profile.exclusive(source_locations.GPU_TIME)[nodes]).argsort(kind="stable")
            found.append(
                _finding(profile, tuple(nodes[order].tolist()[:8]), value, is_double=is_double)
            )
    return found


def _products(profile: Profile, nodes: tuple[int, ...]) -> Query:
    mask = np.zeros(len(profile.tree), np.bool_)
    mask[list(nodes)] = True
    return Query(profile, mask)


def _is_slow(name: str, names: tuple[str, ...]) -> bool:
    lower = name.lower()
    if any(each in lower for each in _TENSOR_CORE):
        return False
    return any(each in lower for each in names)


def _finding(profile: Profile, nodes: tuple[int, ...], value: int, *, is_double: bool) -> Finding:
    share = value / total(profile, source_locations.GPU_TIME)
    lines = source_locations.by_line(_products(profile, nodes), source_locations.GPU_TIME)
    kind = "float64" if is_double else "float32 without tensor cores"
    return Finding(
        id="precision",
        severity=Severity.of_share(share),
        title=(
            f"matrix products in {kind} take {share:.0%} of the GPU's time, most at "
            f"{source_locations.location_text(profile, lines[0].frame)}"
        ),
        nodes=nodes,
        evidence={
            "product_ns": value,
            "product_share": share,
            "kernel": profile.frame(nodes[0]).name,
        },
        gain=source_locations.bound(
            profile, source_locations.GPU_TIME, value, "the products cost nothing"
        ),
        advice=(
            "make the tensors float32 (a NumPy array or a Python float made them double)"
            if is_double
            else "torch.set_float32_matmul_precision('high') for TF32 on NVIDIA GPUs from Ampere "
            "on, or torch.autocast with bfloat16; in JAX jax_default_matmul_precision"
        ),
        misleads=(
            "the computation needs the precision (TF32 keeps 10 bits of the mantissa, bfloat16 7); "
            "the GPU has no tensor cores"
        ),
    )


ANALYZER = Analyzer("precision", "do matrix products run in a wider type than needed?", _find)
