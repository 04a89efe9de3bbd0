"""Analyzers of device metrics, on profiles built by hand: no GPU was at hand when these were written.

The numbers come from the published case study where there is one, else they are the least that shows
the problem. Names of kernels are real.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from deepcontext.analyzers import Severity, run_analyzers
from deepcontext.profiler.format.frame import Frame, FrameKind, Phase
from deepcontext.profiler.format.gpu_metrics import GPU_METRICS
from deepcontext.profiler.format.memory_metrics import METRICS as MEMORY_METRICS
from deepcontext.profiler.format.metric import (
    CALL_DURATION_NS,
    DEVICE_TIME_NS,
    HOST_TIME_NS,
    Aggregation,
    MetricDescriptor,
)
from deepcontext.profiler.model.metric_rows import MetricRows
from deepcontext.profiler.model.profile import Profile
from deepcontext.profiler.model.run_info import RunInfo
from deepcontext.profiler.model.tree import Tree
from deepcontext.profiler.model.trust import TrustReport
from tests.synthetic import frame_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepcontext.analyzers import Finding

METRICS = {
    m.name: m
    for m in (
        *GPU_METRICS,
        *MEMORY_METRICS,
        DEVICE_TIME_NS,
        HOST_TIME_NS,
        CALL_DURATION_NS,
        MetricDescriptor("program_launch_count", "count", Aggregation.SUM, "launches"),
    )
}
MS = 1_000_000
MIB = 1 << 20

Row = tuple["Sequence[Frame | tuple[Frame, Phase]]", dict[str, tuple[int, int]]]


def step(line: int = 1) -> Frame:
    return Frame(FrameKind.PYTHON, "train_step", "/home/me/train.py", line)


def operator(name: str) -> Frame:
    return Frame(FrameKind.OPERATOR, name)


def kernel(name: str) -> Frame:
    return Frame(FrameKind.KERNEL, name)


def profile_of(rows: Sequence[Row], sections: dict[str, Any] | None = None) -> Profile:
    """Return a profile of call paths with (count, total) by metric at the end of each."""
    frames, phases, parents = [Frame(FrameKind.ROOT, "root")], [Phase.NONE], [0]
    nodes: dict[tuple[Any, ...], int] = {}
    values: dict[str, dict[int, tuple[int, int]]] = {}
    for path, measured in rows:
        at = 0
        key: tuple[Frame, ...] = ()
        for each in path:
            frame, phase = each if isinstance(each, tuple) else (each, Phase.NONE)
            key = (*key, frame)
            if key not in nodes:
                nodes[key] = len(frames)
                frames.append(frame)
                phases.append(phase)
                parents.append(at)
            at = nodes[key]
        for name, pair in measured.items():
            values.setdefault(name, {})[at] = pair
    tree, order = Tree.from_parents(
        np.array(parents), np.arange(len(frames)), np.array([int(phase) for phase in phases])
    )
    place = np.argsort(order)
    return Profile(
        frames=frame_table(frames),
        tree=tree,
        metrics={name: _rows(METRICS[name], pairs, place) for name, pairs in values.items()},
        run=RunInfo(cwd="/home/me", wall_ns=1000 * MS, cpu_count=8),
        trust=TrustReport(),
        sections={name: json.dumps(value).encode() for name, value in (sections or {}).items()},
    )


def _rows(
    descriptor: MetricDescriptor, pairs: dict[int, tuple[int, int]], place: Any
) -> MetricRows:
    rows = sorted((int(place[node]), *pair) for node, pair in pairs.items())
    return MetricRows(
        descriptor,
        np.array([row[0] for row in rows], np.uint32),
        np.array([row[1] for row in rows], np.uint64),
        np.array([row[2] for row in rows], np.int64),
    )


def found(profile: Profile, analyzer: str) -> tuple[Finding, ...]:
    return run_analyzers(profile, only=[analyzer])


def gpu(*rows: tuple[list[Any], int, int], vendor: str = "nvidia", **more: Any) -> Profile:
    """Return a profile of (path, launches, ms) on a GPU of a vendor."""
    measured = [(path, {"gpu_time_ns": (count, ms * MS)}) for path, count, ms in rows]
    return profile_of([*measured, *more.get("rows", ())], {f"gpu_{vendor}": {}})


def indexing(name: str, backward_ms: int, vendor: str = "nvidia") -> Profile:
    path = [step(7), (operator(name), Phase.FORWARD)]
    back = [*path, (operator("IndexBackward0"), Phase.BACKWARD)]
    return gpu(
        ([*path, (kernel("index_elementwise_kernel"), Phase.FORWARD)], 10, 5),
        ([*back, (kernel("indexing_backward_kernel"), Phase.BACKWARD)], 10, backward_ms),
        ([step(8), operator("aten::mm"), kernel("ampere_sgemm_128x64_tn")], 10, 40),
        vendor=vendor,
    )


def test_backward_of_embedding_lookup_by_index() -> None:
    (finding,) = found(indexing("aten::index", 50), "forward_backward")
    assert "train.py:7" in finding.title
    assert "index_select" in finding.advice
    assert finding.gain is not None
    assert finding.gain.upper_bound == 55 * MS  # the gather and its backward


def test_backward_of_index_select_is_no_finding() -> None:
    assert found(indexing("aten::index_select", 8), "forward_backward") == ()


def test_backward_of_a_product_is_no_finding() -> None:
    for name, count in (("aten::addmm", 0), ("aten::native_layer_norm", 1)):
        forward = [step(7), (operator(name), Phase.FORWARD)]
        back = [*forward, (operator("Backward0"), Phase.BACKWARD)]
        profile = gpu(
            ([*forward, (kernel("one"), Phase.FORWARD)], 10, 10),
            ([*back, (kernel("two"), Phase.BACKWARD)], 20, 90),
        )
        assert len(found(profile, "forward_backward")) == count


@pytest.mark.parametrize("order", [1, 2])
def test_gradients_of_gradients_do_not_count_as_backward(order: int) -> None:
    forward = [step(7), (operator("aten::convolution"), Phase.FORWARD)]
    back = [*forward, (operator("ConvolutionBackward0"), Phase.BACKWARD)]
    inner = [*back, (operator("aten::convolution_backward"), Phase.BACKWARD)]
    costly = (
        [*inner, (operator("ConvolutionBackwardBackward0"), Phase.BACKWARD)]
        if order == 2
        else inner
    )
    profile = gpu(
        ([*forward, (kernel("conv"), Phase.FORWARD)], 10, 10),
        ([*inner, (kernel("conv_two"), Phase.BACKWARD)], 20, 20),
        ([*costly, (kernel("conv_four"), Phase.BACKWARD)], 40, 70),
    )
    assert len(found(profile, "forward_backward")) == (1 if order == 1 else 0)


def test_advice_on_indexing_differs_on_amd() -> None:
    (finding,) = found(indexing("aten::index", 50, "amd"), "forward_backward")
    assert "measure" in finding.misleads or "compare" in finding.advice
    assert finding.advice.startswith("compare")


def test_layout_conversions_of_a_unet() -> None:
    conv = operator("aten::cudnn_convolution")
    bad = gpu(
        ([step(3), conv, kernel("cudnn::ops::nchwToNhwcKernel<__half, __half, float>")], 100, 30),
        ([step(3), conv, kernel("sm80_xmma_fprop_implicit_gemm_f16f16")], 100, 70),
    )
    (finding,) = found(bad, "copies")
    assert "channels_last" in finding.advice
    assert "train.py:3" in finding.title
    good = gpu(([step(3), conv, kernel("sm80_xmma_fprop_implicit_gemm_f16f16")], 100, 70))
    assert found(good, "copies") == ()


def test_copies_from_the_host() -> None:
    copy = Frame(FrameKind.COPY, "Memcpy HtoD")
    bad = gpu(([step(4), operator("aten::to"), copy], 10, 30), ([step(5), kernel("gelu")], 10, 70))
    (finding,) = found(bad, "copies")
    assert "pin_memory" in finding.advice
    good = gpu(([step(4), operator("aten::to"), copy], 10, 3), ([step(5), kernel("gelu")], 10, 70))
    assert found(good, "copies") == ()


@pytest.mark.parametrize(
    ("name", "fires"),
    [
        ("ampere_sgemm_128x64_tn", True),
        (
            "sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize256x128x8_stage3_ffma_aligna4_cublas",
            True,
        ),
        ("sm90_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize128x128x32_execute_kernel_cublas", False),
        ("void cutlass::Kernel2<cutlass_80_simt_sgemm_128x64_8x5_nn_align1>", True),
        ("Cijk_Ailk_Bljk_SB_MT64x64x16", True),
        ("cutlass_80_tensorop_s1688gemm_128x128_32x3_tn_align4", False),
        ("ampere_bf16_s16816gemm_bf16_128x128", False),
    ],
)
def test_products_in_float32(name: str, fires: bool) -> None:  # noqa: FBT001
    profile = gpu(([step(), operator("aten::mm"), kernel(name)], 10, 60), ([kernel("k")], 1, 40))
    assert bool(found(profile, "precision")) is fires


def stalls(reasons: dict[str, int]) -> Profile:
    cast = [step(9), operator("aten::_to_copy"), kernel("vectorized_elementwise_kernel")]
    samples: list[Row] = [
        ([*cast, Frame(FrameKind.STALL, name)], {"stall_samples": (count, count)})
        for name, count in reasons.items()
    ]
    return gpu((cast, 10, 60), ([step(8), kernel("gemm")], 10, 40), rows=samples)


def test_stalls_of_a_cast_kernel() -> None:
    name = "smsp__pcsamp_warps_issue_stalled_imc_miss"
    (finding,) = found(stalls({name: 700, "stalled_wait": 300, "selected": 9000}), "stall_reasons")
    assert finding.evidence["reason_share"] == pytest.approx(0.7)
    assert "constants" in finding.advice


def test_even_or_few_stalls_are_no_finding() -> None:
    even = dict.fromkeys(("stalled_imc", "stalled_wait", "stalled_barrier", "stalled_lg"), 250)
    assert found(stalls(even), "stall_reasons") == ()
    assert found(stalls({"stalled_imc": 7}), "stall_reasons") == ()


def launches(blocks: int, threads: int, vendor: str) -> Profile:
    norm = [step(6), operator("aten::native_batch_norm"), kernel("batch_norm_collect_statistics")]
    shape: Row = (norm, {"grid_block_count": (1, blocks), "block_thread_count": (1, threads)})
    rows: list[Row] = [(norm, {"gpu_time_ns": (10, 60 * MS), **shape[1]})]
    return profile_of(rows, {f"gpu_{vendor}": {}})


def test_instance_norm_with_a_wavefront_of_64() -> None:
    (finding,) = found(launches(512, 32, "amd"), "launch_configuration")
    assert "64" in finding.title
    assert finding.gain is not None
    assert finding.gain.upper_bound_share == pytest.approx(0.5)
    assert found(launches(512, 32, "nvidia"), "launch_configuration") == ()
    assert found(launches(512, 64, "amd"), "launch_configuration") == ()


def test_grid_smaller_than_the_device() -> None:
    (finding,) = found(launches(8, 256, "nvidia"), "launch_configuration")
    assert "8 blocks" in finding.title


def idle(ms: int) -> Profile:
    loader = Frame(FrameKind.SCOPE, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__")
    blame: Row = ([step(2), loader], {"gpu_idle_ns": (10, ms * MS)})
    return gpu(([step(5), kernel("gemm")], 10, 60), rows=[blame])


def test_idle_device_is_blamed_on_the_line_of_the_host() -> None:
    (finding,) = found(idle(40), "device_starvation")
    assert "train.py:2" in finding.title
    assert "workers" in finding.advice
    assert found(idle(5), "device_starvation") == ()


def casts(count: int, ms: int, above: Frame | None = None) -> Profile:
    """Return a step whose line 4 converts for so long, and multiplies for 60 ms."""
    cast = [step(4), *([above] if above else []), operator("aten::to")]
    called: Row = (cast, {"call_duration_ns": (count, count * MS)})
    copied = [*cast, operator("aten::copy_"), kernel("at::native::direct_copy_kernel_cuda")]
    return gpu(
        (copied, count, ms),
        ([step(5), operator("aten::mm"), kernel("gemm")], 10, 60),
        rows=[called],
    )


def test_conversions_take_the_time_of_a_gpu() -> None:
    (finding,) = found(casts(20, 40), "copies")
    assert "train.py:4" in finding.title
    assert "40% of the GPU's time" in finding.title
    assert finding.gain is not None
    assert finding.gain.upper_bound_share == pytest.approx(0.4)
    assert found(casts(20, 3), "copies") == ()
    assert found(casts(2, 40), "copies") == ()  # before the first step
    assert found(casts(20, 40, operator("aten::linear")), "copies") == ()  # part of the product
    moving = Frame(FrameKind.PYTHON, "Module._apply", "/usr/lib/site-packages/torch/module.py", 1)
    assert found(casts(20, 40, moving), "copies") == ()


def waits(ms: int) -> Profile:
    wait: Row = ([step(3), operator("aten::item")], {"sync_wait_ns": (10, ms * MS)})
    return gpu(([step(5), kernel("gemm")], 10, 60), rows=[wait])


def test_waiting_for_the_device_by_line() -> None:
    (finding,) = found(waits(300), "synchronisation")
    assert "train.py:3" in finding.title
    assert finding.gain is not None
    assert finding.gain.upper_bound_share == pytest.approx(0.3)
    assert found(waits(10), "synchronisation") == ()


def kernels(us: int) -> Profile:
    paths: list[tuple[list[Any], int, int]] = [
        ([step(line), operator("aten::mul"), kernel(f"mul_{line}")], 2000, 2 * us)
        for line in range(8)
    ]
    return gpu(*paths)


def test_short_kernels_of_one_function() -> None:
    (finding,) = found(kernels(4), "kernel_fusion")
    assert "train.py" in finding.title
    assert found(kernels(40), "kernel_fusion") == ()


def test_owner_of_the_peak() -> None:
    bad = profile_of([
        ([step(1)], {"peak_bytes": (1, 900 * MIB), "alloc_bytes": (5, 4500 * MIB)}),
        ([step(2)], {"peak_bytes": (1, 100 * MIB), "alloc_bytes": (1, 100 * MIB)}),
    ])
    (finding,) = found(bad, "memory")
    assert "train.py:1" in finding.title
    held = {"peak_bytes": (1, 100 * MIB), "alloc_bytes": (1, 100 * MIB)}
    good = profile_of([([step(n)], held) for n in range(5)])
    assert found(good, "memory") == ()


@pytest.mark.parametrize(("pieces", "count"), [(64, 0), (5000, 1)])
def test_memory_that_is_allocated_a_few_times_and_kept_is_a_pool(pieces: int, count: int) -> None:
    """Such as a server's keys and values for each layer, unlike results of steps in a list."""
    pool = {"gpu_peak_bytes": (1, 900 * MIB), "gpu_alloc_bytes": (pieces, 900 * MIB)}
    rest: Row = ([step(2)], {"gpu_peak_bytes": (1, 100 * MIB), "gpu_alloc_bytes": (9, 900 * MIB)})
    assert len(found(profile_of([([step(1)], pool), rest]), "memory")) == count


def test_parameters_are_not_reported_as_an_owner() -> None:
    model = {
        "peak_bytes": (1, 900 * MIB),
        "peak_parameter_bytes": (1, 900 * MIB),
        "alloc_bytes": (1, 900 * MIB),
    }
    rest: Row = ([step(2)], {"peak_bytes": (1, 100 * MIB)})
    assert found(profile_of([([step(1)], model), rest]), "memory") == ()


@pytest.mark.parametrize(
    ("memory_bytes", "severity"),
    [(1500 * MIB, Severity.WARNING), (80_000 * MIB, Severity.INFO), (0, Severity.INFO)],
)
def test_each_device_has_its_own_owner(memory_bytes: int, severity: Severity) -> None:
    """A peak that is a small part of the device's memory needs no change."""
    rows: list[Row] = [
        ([step(n)], {"gpu_peak_bytes": (1, held), "gpu_alloc_bytes": (5, 5 * held)})
        for n, held in ((1, 900 * MIB), (2, 100 * MIB))
    ]
    devices = {"gpu_nvidia": {"devices": [{"device": 0, "memory_bytes": memory_bytes}]}}
    (finding,) = found(profile_of(rows, devices), "memory")
    assert "device memory" in finding.title
    assert finding.severity is severity


def growing(grown_steps: int, size_bytes: int) -> Profile:
    rows: list[Row] = [
        ([step(3)], {"growth_bytes": (grown_steps, size_bytes), "alloc_bytes": (1, MIB)}),
        ([step(4)], {"peak_bytes": (1, 10 * MIB)}),
    ]
    section = {"version": 1, "steps": 32, "growth_since_step": 8, "untracked_bytes": 0, "pools": []}
    return profile_of(rows, {"memory": section})


def test_memory_that_only_grows() -> None:
    (finding,) = found(growing(24, 24 * MIB), "memory")
    assert "train.py:3" in finding.title
    assert "24 of 24 steps" in finding.title
    assert finding.evidence["step_growth_bytes"] == MIB


def test_slow_growth_in_every_step_is_judged_over_a_whole_run() -> None:
    (finding,) = found(growing(24, 24 * 8192), "memory")
    assert finding.evidence["step_growth_bytes"] == 8192
    assert found(growing(23, 24 * 8192), "memory") == ()


def test_a_cache_that_fills_is_no_leak() -> None:
    assert found(growing(2, 24 * MIB), "memory") == ()
    assert found(growing(24, 1000), "memory") == ()


@pytest.mark.parametrize(
    ("markers", "runs", "computed_ms", "severity"),
    [
        (1, 10, 60, Severity.INFO),  # the first value of a loop, or what a product prefers
        (0, 10, 60, Severity.HIGH),  # the program transposes
        (1, 200, 60, Severity.INFO),  # in each pass of a loop that changes no part of an array
        (1, 10, 20, Severity.HIGH),  # the program does little else
    ],
)
def test_copies_that_no_program_avoids_are_no_warning(
    markers: int, runs: int, computed_ms: int, severity: Severity
) -> None:
    call = [step(4), Frame(FrameKind.OPERATOR, "jit(train_step)")]
    marker = [Frame(FrameKind.MARKER, "inserted by the compiler")] * markers
    copy, dot = Frame(FrameKind.HLO, "copy.3"), Frame(FrameKind.HLO, "dot.1")
    rows: list[Row] = [
        (call, {"program_launch_count": (10, 10)}),
        ([*call, *marker, copy], {"device_time_ns": (runs, 30 * MS)}),
        ([*call, dot], {"device_time_ns": (10, computed_ms * MS)}),
    ]
    (finding,) = found(profile_of(rows, {"jax": {"version": 1}}), "copies")
    assert finding.severity is severity


def fused(fusion_ms: int, shape: str) -> Profile:
    """Return a compiled program: a fusion of a shape, and one of the same bytes that takes 50 ms."""
    jit = Frame(FrameKind.OPERATOR, "jit(train_step)")
    member = {"primitive": "add", "phase": "none", "source": 0, "flops": 1}
    shared = {"opcode": "fusion", "phase": "none", "members": [member], "lines": [0]}
    work = {"flops": 10**6, "bytes": 8 * 10**6, "shape": "f32[8]"}
    times = {"add_fusion": fusion_ms * MS, "multiply_fusion": 50 * MS}
    program: dict[str, Any] = {
        "uid": 1,
        "module": "jit_train_step",
        "output_bytes": 0,
        "lines": [["step", "/train.py", 4]],
        "operations": [{"name": name, **shared, **work} for name in times],
    }
    program["operations"][0]["shape"] = shape
    rows: list[Row] = [
        ([step(4), jit, Frame(FrameKind.HLO, name)], {"device_time_ns": (10, value)})
        for name, value in times.items()
    ]
    ran = [[1, number, 10, value] for number, value in enumerate(times.values())]
    return profile_of(rows, {"jax": {"version": 1, "programs": [program], "times": ran}})


@pytest.mark.parametrize(
    ("fusion_ms", "shape", "count"),
    [(60, "f64[8]", 1), (60, "(f64[8], f32[])", 1), (60, "f32[8]", 0), (10, "f64[8]", 0)],
)
def test_float64_in_jax(fusion_ms: int, shape: str, count: int) -> None:
    findings = found(fused(fusion_ms, shape), "precision")
    assert len(findings) == count
    for each in findings:
        assert each.title.startswith("float64 takes 55% of the time in JAX's programs, most at ")
        assert "train.py:4" in each.title


def test_functions_that_jax_compiled_again() -> None:
    def record(reason: str) -> dict[str, Any]:
        return {
            "function": "train_step",
            "reason": reason,
            "changes": ["x: float32[8,4] became float32[9,4]"],
            "path": [["main", "/home/me/train.py", 21]],
            "trace_ns": 10 * MS,
            "lower_ns": 10 * MS,
            "compile_ns": 80 * MS,
        }

    def of(count: int) -> Profile:
        compilations = [record("first"), *(record("arguments") for _ in range(count))]
        return profile_of([([step()], {})], {"jax": {"version": 1, "compilations": compilations}})

    (finding,) = found(of(5), "recompilation")
    assert "train.py:21" in finding.title
    assert "float32[9,4]" in str(finding.evidence["changes"])
    assert finding.gain is not None
    assert finding.gain.upper_bound_share == pytest.approx(0.5)
    assert found(of(0), "recompilation") == ()


@pytest.mark.parametrize(
    ("count", "old", "severity"),
    [
        (1, "f32[8,4]", Severity.INFO),
        (2, "f32[8,4]", Severity.WARNING),
        (1, "f32[9,4] weakly typed", Severity.WARNING),
        (1, "f64[9,4]", Severity.WARNING),
    ],
)
def test_a_second_shape_of_a_jax_function_is_no_warning(
    count: int, old: str, severity: Severity
) -> None:
    """A last batch, an evaluation; other types, or more shapes, have a cause that can be removed."""
    again = {
        "function": "train_step",
        "reason": "arguments",
        "changes": [f"argument 'x' changed from {old} to f32[9,4]"],
        "path": [["main", "/home/me/train.py", 21]],
        "trace_ns": 0,
        "lower_ns": 0,
        "compile_ns": 200 * MS // count,
    }
    jax = {"version": 1, "compilations": [again] * count}
    (finding,) = found(profile_of([([step()], {})], {"jax": jax}), "recompilation")
    assert finding.severity is severity


@pytest.mark.parametrize(("untimed", "count"), [(10, 1), (11, 0)])
def test_shares_of_device_time_include_every_program(untimed: int, count: int) -> None:
    """On a busy machine the training step itself may never run whole while it is sampled."""
    rows: list[Row] = [
        (
            [step(), operator("jit(init)"), Frame(FrameKind.HLO, "sort.1")],
            {"device_time_ns": (1, 50 * MS)},
        ),
        ([step(), operator("jit(train_step)")], {"program_launch_count": (100, 100)}),
    ]
    jax = {"version": 1, "compilations": [], "sampling": {"unsampled_launches": untimed}}
    assert len(found(profile_of(rows, {"jax": jax}), "hotspot")) == count


@pytest.mark.parametrize(("computed_ms", "count"), [(0, 0), (5, 1), (200, 0)])
def test_launches_are_not_compared_with_programs_that_were_not_timed(
    computed_ms: int, count: int
) -> None:
    launched = {"program_launch_count": (5000, 5000), "host_time_ns": (5000, 100 * MS)}
    path = [step(), operator("jit(train_step)")]
    rows: list[Row] = [(path, launched)]
    if computed_ms:
        rows.append((
            [*path, Frame(FrameKind.HLO, "dot.1")],
            {"device_time_ns": (1, computed_ms * MS)},
        ))
    profile = profile_of(rows, {"jax": {"version": 1, "compilations": []}})
    assert len(found(profile, "kernel_fusion")) == count


@pytest.mark.parametrize(("launch_ms", "severity"), [(40, Severity.INFO), (60, Severity.HIGH)])
def test_a_few_milliseconds_of_launches_are_no_warning(launch_ms: int, severity: Severity) -> None:
    rows: list[Row] = []
    for program in range(5):
        path = [step(), operator(f"jit(op{program})")]
        launched = {"program_launch_count": (20, 20), "host_time_ns": (20, launch_ms * MS // 5)}
        rows += [
            (path, launched),
            ([*path, Frame(FrameKind.HLO, "add.1")], {"device_time_ns": (1, MS)}),
        ]
    profile = profile_of(rows, {"jax": {"version": 1, "compilations": []}})
    (finding,) = found(profile, "kernel_fusion")
    assert finding.severity is severity


@pytest.mark.parametrize(
    ("caller", "ids"),
    [
        (step(), ["kernel_fusion"]),
        (
            Frame(FrameKind.PYTHON, "other", "/home/me/train.py", 30),
            ["kernel_fusion", "copies"],
        ),
    ],
)
def test_copies_in_launches_of_small_programs_are_no_other_finding(
    caller: Frame, ids: list[str]
) -> None:
    """One line that launches a program for each operation also copies in each program."""
    rows: list[Row] = []
    for program in range(5):
        path = [step(), operator(f"jit(op{program})")]
        rows.append((path, {"program_launch_count": (20, 20), "host_time_ns": (20, 40 * MS)}))
    moved = [caller, operator("jit(move)"), Frame(FrameKind.HLO, "copy.1")]
    rows += [
        (moved, {"device_time_ns": (20, 90 * MS)}),
        (
            [step(), operator("jit(op1)"), Frame(FrameKind.HLO, "add.1")],
            {"device_time_ns": (1, MS)},
        ),
    ]
    profile = profile_of(rows, {"jax": {"version": 1, "compilations": []}})
    findings = run_analyzers(profile, only=["kernel_fusion", "copies"])
    assert [each.id for each in findings] == ids


@pytest.mark.parametrize(("relation", "count"), [("called", 1), ("beside", 2)])
def test_functions_that_another_one_calls_have_its_finding_of_small_programs(
    relation: str, count: int
) -> None:
    """One `jit` around the caller mends both."""
    inner = Frame(FrameKind.PYTHON, "gate", "/home/me/train.py", 30)
    rows: list[Row] = []
    for program in range(5):
        launched = {"program_launch_count": (20, 20), "host_time_ns": (20, 40 * MS)}
        for path in ([step()], [step(), inner] if relation == "called" else [inner]):
            whole = [*path, operator(f"jit(op{program})")]
            rows += [
                (whole, launched),
                ([*whole, Frame(FrameKind.HLO, "add.1")], {"device_time_ns": (1, MS)}),
            ]
    profile = profile_of(rows, {"jax": {"version": 1, "compilations": []}})
    findings = found(profile, "kernel_fusion")
    assert len(findings) == count
    assert findings[0].evidence["host_time_ns"] == 400 * MS // count
    if relation == "called":
        assert "train.py:1 (train_step)" in findings[0].title


@pytest.mark.parametrize(("computed_ms", "count"), [(20, 1), (40, 0)])
def test_a_launch_that_computes_its_program_is_not_small(computed_ms: int, count: int) -> None:
    path = [step(), operator("jit(update)")]
    rows: list[Row] = [
        (path, {"program_launch_count": (1000, 1000), "host_time_ns": (1000, 60 * MS)}),
        ([*path, Frame(FrameKind.HLO, "add.1")], {"device_time_ns": (1000, computed_ms * MS)}),
    ]
    profile = profile_of(rows, {"jax": {"version": 1, "compilations": []}})
    assert len(found(profile, "kernel_fusion")) == count


@pytest.mark.parametrize(
    ("products", "severity"),
    [(0, Severity.HIGH), (12, Severity.INFO), (100, Severity.HIGH)],
)
def test_an_unrolled_loop_is_no_warning_where_it_may_be_layers(
    products: int, severity: Severity
) -> None:
    member = {"primitive": "mul", "phase": "forward", "source": 0, "flops": 1}
    shared = {"phase": "forward", "lines": [0], "flops": 1, "bytes": 8, "shape": "f32[8]"}
    fusion = {"name": "fusion", "opcode": "fusion", "members": [member] * 70, **shared}
    dot = {"name": "dot", "opcode": "dot", "members": [], **shared}
    program = {
        "uid": 1,
        "module": "jit_improve",
        "lines": [["step", "/train.py", 4]],
        "operations": [fusion, *[dot] * products],
    }
    jax = {
        "version": 1,
        "programs": [program],
        "times": [[1, number, 10, MS] for number in range(1 + products)],
        "functions": [{"function": "improve", "compilations": 1, "compile_ns": 400 * MS}],
    }
    launch = {"program_launch_count": (10, 10), "host_time_ns": (10, 60 * MS)}
    profile = profile_of([([step(), operator("jit(improve)")], launch)], {"jax": jax})
    (finding,) = found(profile, "kernel_fusion")
    assert "repeats /train.py:4 (step) up to 70 times" in finding.title
    assert finding.severity is severity
