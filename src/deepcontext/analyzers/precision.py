"""Precision: operators that compute in a wider type than needed, or in one without a fast path.

On a GPU, the names of kernels reveal types. On a processor, the inputs of operators do, which are recorded
in short windows, and always with shapes (``--shapes``). Compiled programs of JAX say the type of each result.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.base import Analyzer
from deepcontext.analyzers.finding import Finding, Severity
from deepcontext.analyzers.shared import input_types, source_locations
from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.format.metric import HOST_TIME_NS
from deepcontext.profiler.model.metric_values import total
from deepcontext.profiler.model.query import Query
from deepcontext.profiler.summaries.jax import operations as jax_operations
from deepcontext.profiler.summaries.torch_settings import torch_settings

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

_SAVED_BY_FLOAT32: Final = 2 / 3
_ASSUMPTION: Final = (
    "float32 takes a third of the time: twice as many elements an instruction and a byte, and better use of "
    "the caches"
)
_NEEDED: Final = "the computation needs float64, as solvers and Gaussian processes do"
_DOUBLE_INPUT: Final = "f64"
# Source: cuBLAS and CUTLASS name kernels by type: sgemm and simt are float32 without tensor cores,
# dgemm is float64. rocBLAS (Tensile) writes the types after the layout: _SB_ is float32, _DB_ double.
# On an H100, CUDA 13.0 ran float32 as sm80_xmma_gemm_f32f32_f32f32_f32_..._ffma_..., and with TF32 as
# sm90_xmma_gemm_f32f32_tf32f32_f32_...
_SINGLE: Final = ("sgemm", "simt_s", "_sb_", "s884gemm_fp32", "gemm_f32f32_f32f32_f32")
_DOUBLE: Final = ("dgemm", "simt_d", "_db_", "d884", "gemm_f64f64_f64f64_f64")
_TENSOR_CORE: Final = ("tf32", "s1688", "bf16", "f16", "fp16", "h884", "h1688", "16816", "s161616")


def _find(profile: Profile) -> list[Finding]:
    whole = source_locations.judged_total(profile, source_locations.GPU_TIME)
    if not whole:
        return [*_doubles(profile), *_halves(profile), *_jax_doubles(profile)]
    found = []
    for names, is_double in ((_SINGLE, False), (_DOUBLE, True)):
        kernels = source_locations.nodes_named(
            profile, FrameKind.KERNEL, functools.partial(_is_slow, names=names)
        )
        value = kernels.total(source_locations.GPU_TIME)
        if value / whole >= input_types.LEAST_SHARE:
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


def _doubles(profile: Profile) -> list[Finding]:
    """Report operators of a processor that compute in float64."""
    entries = {
        "it is made of other data": input_types.most_made(profile),
        "it meets a narrower type": input_types.most_widened(profile),
    }
    where = "".join(
        f"; {text} at "
        + " and ".join(source_locations.location_text(profile, each.frame) for each in lines)
        for text, lines in entries.items()
        if lines
    )
    findings = [
        _cpu_finding(
            profile,
            nodes,
            value,
            "float64 takes {share:.0%} of the time in operators, most at {where}" + where,
            "make the tensors float32 where they enter: NumPy's arrays and random numbers are float64 "
            "(array.astype(numpy.float32), torch.as_tensor(array, dtype=torch.float32)), and so is a model "
            "after .double()",
            _NEEDED,
        )
        for nodes, value in input_types.costly(profile, _DOUBLE_INPUT)
    ]
    also = tuple(each.nodes[0] for lines in entries.values() for each in lines)
    return [dataclasses.replace(each, nodes=each.nodes[:6] + also) for each in findings]


def _halves(profile: Profile) -> list[Finding]:
    """Report products in types of 16 bits that this processor has no instructions for."""
    fast = torch_settings(profile).fast_types
    return [
        _cpu_finding(
            profile,
            nodes,
            value,
            f"{name} takes {{share:.0%}} of the time in operators, most at {{where}}, and this processor has "
            f"no instructions for {name}",
            f"compute in float32 on this processor, which has no fast path for {name}: no autocast, no "
            ".to(dtype); or run on one with AMX or AVX-512 for the type",
            "memory, not time, is what the narrow type is for",
        )
        for name, short in (("bfloat16", "bf16"), ("float16", "f16"))
        if fast is not None and short not in fast
        for nodes, value in input_types.costly(profile, short)
    ]


def _jax_doubles(profile: Profile) -> list[Finding]:
    """Report operations of compiled JAX programs whose results are float64."""
    whole = source_locations.judged_total(profile, source_locations.DEVICE_TIME)
    if not whole or not source_locations.has_jax(profile):
        return []
    doubles = [each for each in jax_operations.operations(profile) if each.type == "f64"]
    value = min(sum(each.device_ns for each in doubles), whole)
    if value < input_types.LEAST_SHARE * whole:
        return []
    names = {each.name for each in doubles}
    found = source_locations.nodes_named(profile, FrameKind.HLO, names)
    lines = source_locations.by_line(found, source_locations.DEVICE_TIME)
    if not lines:
        return []
    share = value / whole
    return [
        Finding(
            id="precision",
            severity=Severity.of_share(share),
            title=(
                f"float64 takes {share:.0%} of the time in JAX's programs, most at "
                f"{source_locations.location_text(profile, lines[0].frame)}"
            ),
            nodes=lines[0].nodes[:8],
            evidence={"typed_ns": value, "typed_share": share},
            gain=source_locations.bound(
                profile, source_locations.DEVICE_TIME, int(_SAVED_BY_FLOAT32 * value), _ASSUMPTION
            ),
            advice=(
                "leave jax_enable_x64 off, which makes float64 of NumPy's arrays and of random numbers; "
                "where a part needs float64, ask for dtype=jnp.float32 in the others"
            ),
            misleads=_NEEDED,
        )
    ]


def _cpu_finding(
    profile: Profile,
    nodes: tuple[int, ...],
    value: int,
    title: str,
    advice: str,
    misleads: str,
) -> Finding:
    lines = source_locations.by_line(_products(profile, nodes), HOST_TIME_NS.name)
    share = value / total(profile, HOST_TIME_NS.name)
    where = source_locations.location_text(profile, lines[0].frame)
    return Finding(
        id="precision",
        severity=Severity.of_share(share),
        title=title.format(share=share, where=where),
        nodes=lines[0].nodes[:4] + nodes[:4],
        evidence={"typed_ns": value, "typed_share": share},
        gain=source_locations.bound(
            profile,
            HOST_TIME_NS.name,
            int(_SAVED_BY_FLOAT32 * value),
            _ASSUMPTION,
        ),
        advice=advice,
        misleads=misleads,
    )


ANALYZER = Analyzer("precision", "do matrix products run in a wider type than needed?", _find)
