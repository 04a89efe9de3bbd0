"""What the analyzers find in files of other profilers, which often have no line of the user's code."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from deepcontext.analyzers import run_analyzers
from deepcontext.profiler.importing.opening import load
from tests.profiler.importing.test_nsight import MS, export, process, thread
from tests.profiler.importing.traces import NVIDIA, kernel, launch, op, python, write

if TYPE_CHECKING:
    from deepcontext.analyzers import Finding
    from deepcontext.profiler.model.profile import Profile

    Event = dict[str, object]

TRACES = os.environ.get("DEEPCONTEXT_TRACES", "")


def findings(profile: Profile) -> dict[str, Finding]:
    return {each.id: each for each in run_analyzers(profile)}


def layers(count: int, gap: float) -> list[Event]:
    """Return operators that launch one kernel each, `gap` us after the last kernel has ended."""
    events: list[Event] = []
    for n in range(count):
        at = n * (100 + gap)
        events += [
            op("aten::linear", at, 90 + gap),
            op("aten::addmm", at + 5, 80 + gap),
            launch(at + gap, n + 1),
            kernel("gemm", at + gap, 100, n + 1),
        ]
    return events


def test_an_idle_gpu_is_found_in_a_single_step_without_lines(tmp_path: Path) -> None:
    profile = load(write(tmp_path / "trace.json", layers(20, 300), **NVIDIA))
    finding = findings(profile)["device_starvation"]
    assert finding.title.startswith(
        "the GPU is idle 74% of the time; the host is late at aten::linear"
    )
    assert "CUDA" not in finding.advice


def test_a_gpu_without_gaps_is_busy_and_its_host_may_wait(tmp_path: Path) -> None:
    events = [*layers(20, 0), launch(95, 99, name="hipDeviceSynchronize", duration=1900)]
    profile = load(write(tmp_path / "trace.json", events, **NVIDIA))
    assert profile.metrics["sync_wait_ns"].total.sum() > 0
    assert profile.metrics["gpu_idle_ns"].total.sum() == 0
    assert not {"device_starvation", "synchronisation"} & set(findings(profile))


def test_communication_that_nothing_hides_is_found_at_its_line(tmp_path: Path) -> None:
    events = [
        python("train.py(3): step", 0, 5000),
        op("c10d::allreduce_", 10, 20),
        launch(15, 1),
        kernel("gemm", 0, 1000, 7),
        kernel("ncclDevKernel_Generic(args)", 500, 1500, 1, stream=9),
    ]
    (finding,) = findings(load(write(tmp_path / "trace.json", events, **NVIDIA))).values()
    assert finding.id == "communication"
    assert finding.title == (
        "the GPU computes nothing 40% of its time, while it exchanges data (ncclDevKernel_Generic) at "
        "train.py:3 (step)"
    )


def test_a_copy_that_its_call_waited_for_is_a_wait(tmp_path: Path) -> None:
    name = "Memcpy DtoH (Device -> Pageable)"
    events = [
        op("aten::item", 0, 900),
        launch(10, 1, name="cudaMemcpyAsync", duration=800),
        kernel(name, 700, 5, 1, category="gpu_memcpy"),
        launch(950, 2, name="cudaMemcpyAsync"),
        kernel(name, 970, 5, 2, category="gpu_memcpy"),
    ]
    profile = load(write(tmp_path / "trace.json", events, **NVIDIA))
    assert profile.metrics["sync_wait_ns"].total.tolist() == [800_000]


def test_functions_called_forward_have_the_class_of_their_module(tmp_path: Path) -> None:
    events = [
        python("nn.Module: Norm_3", 0, 90),
        python("torch/nn/modules/module.py(1700): _call_impl", 1, 88),
        python("model.py(7): forward", 2, 80),
        python("model.py(9): forward", 3, 70),
    ]
    names = {frame.name for frame in load(write(tmp_path / "trace.json", events)).frames}
    assert {"Norm.forward", "forward"} <= names


def test_copies_of_an_export_are_found_at_their_operator(tmp_path: Path) -> None:
    script = ""
    for n in range(40):
        at, own = (7000 + 20 * n) * MS, thread(10, 10)
        for text in (f"FSDP::pre_forward (layer.{n}), op_id = {n}", f"aten::to, op_id = {n + 100}"):
            script += f"INSERT INTO NVTX_EVENTS VALUES ({at}, {at + MS}, 59, '{text}', NULL, {own}, NULL);"
        script += (
            f"INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES ({at}, {at + 1000}, 0, {own}, {n + 50}, 3, 0, "
            "NULL);"
            f"INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES ({at + MS}, {at + 15 * MS}, 0, 7, {n + 50}, "
            f"{process(10)}, 4096, 1);"
        )
    profile = load(export(tmp_path / "report.sqlite", script))
    assert findings(profile)["copies"].title == "Memcpy HtoD from aten::to: 96% of the GPU's time"


# What a reader of these files agrees with; nothing else is found.
OF_REAL_TRACES = {
    "kineto_b200_eager.json.gz": {"device_starvation": "is idle 55%"},
    "kineto_compile_triton.json.gz": {},
    "kineto_h100_qwen.json.gz": {"copies": "aten::contiguous"},
    "kineto_mi210_gpu_only.json.gz": {"copies": "converts between NCHW and NHWC"},
    "kineto_mi300_resnet_checkpoint.json.gz": {"communication": "49%"},
    "kineto_old_rank0.json.gz": {
        "communication": "16%",
        "far_from_peak": "no multiples of 16 bytes",
        "synchronisation": "aten::to, 71%",
    },
    "kineto_vllm_graph_execution.json.gz": {},
    "nsys_h100_2gpu_1s.sqlite": {"copies": "Memcpy HtoD from aten::to"},
    "proton_cuda.json": {},
    "rocprofv3_results.json.gz": {"communication": "26%"},
}


@pytest.mark.traces
@pytest.mark.skipif(not TRACES, reason="DEEPCONTEXT_TRACES names no folder of traces")
@pytest.mark.parametrize("name", OF_REAL_TRACES)
def test_findings_in_public_traces(name: str) -> None:
    found = findings(load(Path(TRACES, name)))
    assert set(found) == set(OF_REAL_TRACES[name])
    for key, part in OF_REAL_TRACES[name].items():
        assert part in found[key].title
        assert not {"CUDA", "NVIDIA"} & set(found[key].advice.split())
