"""The points of a roofline: the figures of the report by line, module and operator, and what limits each."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from deepcontext.profiler.format.frame import Frame, FrameKind, Phase
from deepcontext.profiler.format.metric import DEVICE_TIME_NS, GPU_TIME_NS, HOST_TIME_NS
from deepcontext.profiler.format.peaks import SECTION, DevicePeaks, encode_section
from deepcontext.profiler.model.metric_rows import MetricRows
from deepcontext.profiler.model.metric_table import MetricTable
from deepcontext.profiler.model.run_info import RunInfo
from deepcontext.profiler.summaries.efficiency import efficiency
from deepcontext.profiler.summaries.jax.operations import operations
from deepcontext.profiler.summaries.jax.roofline import jax_roofline
from deepcontext.profiler.summaries.roof import with_peaks
from deepcontext.profiler.summaries.roofline import KINDS, torch_roofline

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.summaries.roofline import Point, Roofline
    from tests.conftest import MakeProfile

# 1 flop a ns in f32; 1 byte a ns: both roofs meet at 1 flop/byte.
PEAKS = DevicePeaks("A CPU", 4, 2, {"f32": 1e9}, 1e9)
RUN = RunInfo(cpu_model="A CPU", cpu_count=4)
MM = "aten::mm(f32[200, 300], f32[300, 400])"  # 48,000,000 flop, 1,040,000 bytes
KEYS = "f32[2, 5, 20, 4]"
ATTENTION = f"aten::_scaled_dot_product_flash_attention_for_cpu(f32[2, 5, 10, 4], {KEYS}, {KEYS})"
FRAMES = [
    Frame(FrameKind.ROOT, ""),
    Frame(FrameKind.PYTHON, "forward", "/p.py", 3),
    Frame(FrameKind.MODULE, "Net ''"),
    Frame(FrameKind.MODULE, "Linear 'fc'"),
    Frame(FrameKind.OPERATOR, MM),
    Frame(FrameKind.OPERATOR, "aten::neg(f32[100000])"),  # 800,000 bytes
    Frame(FrameKind.PYTHON, "loop", "/p.py", 9),
    Frame(FrameKind.OPERATOR, "aten::neg(f32[8])"),  # 64 bytes
    Frame(FrameKind.OPERATOR, "aten::neg(f32[1000])"),  # 8,000 bytes
    Frame(FrameKind.OPERATOR, "aten::mm(i8[200, 300], i8[300, 400])"),  # no peak
]
#          0  1  2  3  4  5  6  7  8  9
PARENTS = [0, 0, 1, 2, 3, 2, 0, 6, 6, 6]
CALLS: dict[int, Sequence[int]] = {
    4: [60_000_000, 60_000_000],
    5: [2_000_000],
    7: [3_000] * 1000,
    8: [9_000],
    9: [1_000_000],
}


@pytest.fixture
def profile(make_profile: MakeProfile) -> Profile:
    made = make_profile(PARENTS, FRAMES, call_samples_ns=CALLS, run=RUN)
    return made.with_section(SECTION, encode_section([PEAKS], 2))


def found_in(profile: Profile) -> Roofline:
    found = torch_roofline(profile)
    assert found is not None
    return found


def points(profile: Profile, by: str) -> dict[str, Point]:
    return {each.place.function: each for each in found_in(profile).points[by]}


def test_lines_and_operators_have_the_figures_of_the_report(profile: Profile) -> None:
    moved = efficiency(profile)
    found = found_in(profile)
    assert moved is not None
    assert [(p.place.file, p.place.line, p.work) for p in found.points["line"]] == [
        (row.file, row.line, row.work) for row in moved.lines
    ]
    assert [(p.place.function, p.work) for p in found.points["operator"]] == [
        (row.name, row.work) for row in moved.operators
    ]
    assert found.total == moved.total
    assert found.types == ("f32", "i8")


def test_the_time_of_a_point_is_divided_by_what_limits_its_operators(profile: Profile) -> None:
    forward, loop = (points(profile, "line")[name] for name in ("forward", "loop"))
    assert forward.limit_ns == (120_000_000, 2_000_000, 0, 0)
    assert forward.limit == "compute"
    # A peak is missing for a product of i8; a call of 9 us that moves data for 8 us is no launch.
    assert loop.limit_ns == (0, 9_000, 3_000_000, 1_000_000)
    assert loop.limit == "launch"
    assert sum(loop.limit_ns) == loop.work.time_ns


def test_without_peaks_only_launches_are_known(make_profile: MakeProfile) -> None:
    profile = make_profile(PARENTS, FRAMES, call_samples_ns=CALLS, run=RUN)
    assert points(profile, "line")["forward"].limit == "unknown"
    # Without peaks the call of 9 us cannot be told from a launch.
    assert points(profile, "line")["loop"].limit_ns == (0, 0, 3_009_000, 1_000_000)


def test_an_operator_whose_bytes_are_not_known_has_no_limit(make_profile: MakeProfile) -> None:
    # The type of the second factor was not recorded.
    frames = [*FRAMES[:2], Frame(FrameKind.OPERATOR, MM)]
    frames.append(Frame(FrameKind.OPERATOR, "aten::mm(f32[200, 300], [300, 400])"))
    made = make_profile([0, 0, 1, 1], frames, call_samples_ns={2: [10**8], 3: [10**8]}, run=RUN)
    made = made.with_section(SECTION, encode_section([PEAKS], 2))
    found = points(made, "operator")
    assert {name: each.limit for name, each in found.items()} == {
        MM: "compute",
        "aten::mm(f32[200, 300], [300, 400])": "unknown",
    }
    assert found["aten::mm(f32[200, 300], [300, 400])"].work.of_peak is not None


def test_operators_belong_to_their_innermost_module(profile: Profile) -> None:
    found = points(profile, "module")
    assert {name: each.work.time_ns for name, each in found.items()} == {
        "Linear 'fc'": 120_000_000,
        "Net ''": 2_000_000,
    }


def test_a_point_shows_the_node_with_most_of_its_time(make_profile: MakeProfile) -> None:
    frames = [FRAMES[0], FRAMES[1], Frame(FrameKind.OPERATOR, MM)]
    frames += [Frame(FrameKind.PYTHON, "other", "/p.py", 7), FRAMES[1], frames[2]]
    made = make_profile(
        [0, 0, 1, 0, 3, 4],
        frames,
        call_samples_ns={2: [10**6], 5: [10**7]},
        phases=[Phase.NONE] * 6,
        run=RUN,
    )
    assert points(made, "line")["forward"].node == 4
    assert points(made, "operator")[MM].node == 5
    assert points(made, "operator")[MM].work.calls == 2


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (MM, "matrix products"),
        (ATTENTION, "attention"),
        ("aten::mkldnn_rnn_layer(f32[7, 2, 3], f32[16, 3], f32[16, 4])", "recurrent layers"),
        ("aten::neg(f32[8])", "other operators"),
    ],
)
def test_kinds_follow_from_names(make_profile: MakeProfile, name: str, kind: str) -> None:
    frames = [*FRAMES[:2], Frame(FrameKind.OPERATOR, name)]
    made = make_profile([0, 0, 1], frames, call_samples_ns={2: [10**6]}, run=RUN)
    assert KINDS[points(made, "operator")[name].kind] == kind


def test_a_profile_without_shapes_has_no_roofline(make_profile: MakeProfile) -> None:
    frames = [*FRAMES[:2], Frame(FrameKind.OPERATOR, "aten::mm")]
    made = make_profile([0, 0, 1], frames, call_samples_ns={2: [10**6]}, run=RUN)
    assert torch_roofline(made) is None
    assert jax_roofline(made) is None


def test_on_a_gpu_the_time_is_that_of_kernels_under_the_published_roof(
    make_profile: MakeProfile,
) -> None:
    product = "aten::mm(bf16[8192, 8192], bf16[8192, 8192])"  # 1.1 Tflop
    frames = [
        *FRAMES[:2],
        Frame(FrameKind.OPERATOR, product),
        Frame(FrameKind.KERNEL, "gemm"),
        Frame(FrameKind.OPERATOR, "aten::neg(f32[8])"),
        Frame(FrameKind.KERNEL, "elementwise"),
    ]
    calls: dict[int, Sequence[int]] = {2: [20_000], 4: [15_000] * 10}
    made = make_profile([0, 0, 1, 2, 1, 4], frames, call_samples_ns=calls, run=RUN)
    on_gpu = MetricRows(
        GPU_TIME_NS,
        np.array([3, 5], np.uint32),
        np.array([1, 10], np.uint64),
        np.array([2_000_000, 30_000], np.int64),
    )
    devices = {"devices": [{"name": "NVIDIA H100 80GB HBM3"}]}
    made = dataclasses.replace(
        made,
        metrics=MetricTable({**made.stored_metrics(), GPU_TIME_NS.name: on_gpu}),
        sections={"gpu_nvidia": json.dumps(devices).encode()},
    )
    found = found_in(made)
    assert found.is_on_gpu
    assert found.roof is not None
    assert found.roof.origin == "published"
    large, small = found.points["operator"]
    assert (large.place.function, large.limit, large.work.time_ns) == (
        product,
        "compute",
        2_000_000,
    )
    assert large.work.of_peak == pytest.approx(2 * 8192**3 / 989.5e12 / 2e-3)
    assert (small.limit, small.work.time_ns) == ("launch", 30_000)


# -- JAX

LINE = ["model", "/p.py", 5]


def operation(name: str, opcode: str, flops: int, size: int, **more: Any) -> dict[str, Any]:
    content = {"phase": "none", "members": [], "lines": [0], "shape": "f32[8]", **more}
    return {"name": name, "opcode": opcode, "flops": flops, "bytes": size, **content}


def compiled(make_profile: MakeProfile, run: RunInfo = RUN) -> Profile:
    """Return a profile of a compiled program: a product, a fusion, a loop and a collective."""
    member = {"primitive": "tanh", "phase": "none", "source": 0, "flops": 0}
    operations_ = [
        operation("dot.1", "dot", 48_000_000, 1_040_000),
        operation("fusion.2", "fusion", 100, 800_000, members=[member]),
        operation("while.3", "while", 10**9, 10**9),
        operation("all-reduce.4", "all-reduce", 0, 64, lines=[]),
    ]
    times = [[1, 0, 2, 120_000_000], [1, 1, 1, 2_000_000], [1, 2, 1, 50], [1, 3, 100, 400_000]]
    program = {"uid": 1, "module": "jit_step", "lines": [LINE], "operations": operations_}
    frames = [Frame(FrameKind.ROOT, "")]
    parents, time = [0], {}
    # Another program has an instruction of the same name, which took longer.
    for name, node_time in (("jit(other)", 10**9), ("jit(step)", 120_000_000)):
        parents += [0, len(frames)]
        frames += [Frame(FrameKind.OPERATOR, name), Frame(FrameKind.HLO, "dot.1")]
        time[len(frames) - 1] = node_time
    made = make_profile(parents, frames, host_time_ns=time, run=run)
    host = made.metrics[HOST_TIME_NS.name]
    device = MetricRows(DEVICE_TIME_NS, host.node, host.count, host.total)
    content = {"version": 1, "programs": [program], "times": times}
    metrics = MetricTable({HOST_TIME_NS.name: host, DEVICE_TIME_NS.name: device})
    return dataclasses.replace(
        made, metrics=metrics, sections={"jax": json.dumps(content).encode()}
    )


def test_operations_of_jax_have_the_figures_of_the_report(make_profile: MakeProfile) -> None:
    profile = compiled(make_profile)
    found = jax_roofline(profile)
    assert found is not None
    listed = {each.name: each for each in operations(profile)}
    placed = {each.place.function: each for each in found.points["operation"]}
    assert set(placed) == {f"{name} in jit_step" for name in listed if name != "while.3"}
    for name, each in listed.items():
        if name == "while.3":
            continue  # its time and work are those of the operations that it calls
        work = placed[f"{name} in jit_step"].work
        assert work.time_ns == each.device_ns
        assert work.flops_per_second == pytest.approx(each.flops_per_second)
        assert work.bytes_per_second == pytest.approx(each.bytes_per_second)
        assert work.intensity == pytest.approx(each.intensity)
    kinds = [KINDS[each.kind] for each in found.points["operation"]]
    assert kinds == ["matrix products", "fusions", "collectives"]
    (line,) = found.points["line"]
    assert (line.place.file, line.place.line) == ("/p.py", 5)
    assert line.work.time_ns == 122_000_000
    (program,) = found.points["program"]
    assert program.work == found.total


def test_an_operation_shows_its_node_in_its_own_program(make_profile: MakeProfile) -> None:
    profile = compiled(make_profile)
    found = jax_roofline(profile)
    assert found is not None
    node = found.points["operation"][0].node
    assert profile.frame(node).name == "dot.1"
    assert "jit(step)" in {frame.name for frame in profile.path(node)}


@pytest.mark.parametrize(("threads", "limit"), [(4, "compute"), (2, "unknown")])
def test_the_roof_of_jax_is_that_of_all_processors(
    make_profile: MakeProfile, threads: int, limit: str
) -> None:
    own = dataclasses.replace(PEAKS, threads=threads)
    found = jax_roofline(with_peaks(compiled(make_profile), [own], replace=False))
    assert found is not None
    assert (found.roof is not None) == (limit == "compute")
    assert found.points["operation"][0].limit == limit
