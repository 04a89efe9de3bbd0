"""Output of rocprofv3 becomes a profile: HIP calls, roctx ranges, kernels, copies; the table of kernels."""

from __future__ import annotations

import gzip
import json
import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from deepcontext.errors import ProfileDataError
from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.importing.opening import load
from deepcontext.ui.cli.app import main

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

US = 1000
SECRET = "secret-host"
KINDS = [
    {"kind": "HIP_RUNTIME_API", "operations": ["hipLaunchKernel", "hipMemcpyAsync"]},
    {"kind": "MARKER_CORE_RANGE_API", "operations": ["roctxMarkA", "roctxThreadRangeA"]},
    {"kind": "MEMORY_COPY", "operations": ["MEMORY_COPY_NONE", "MEMORY_COPY_HOST_TO_DEVICE"]},
    {"kind": "KERNEL_DISPATCH", "operations": []},
]
CSV = """"Kind","Agent_Id","Queue_Id","Kernel_Name","Correlation_Id","Start_Timestamp","End_Timestamp",\
"Workgroup_Size_X","Workgroup_Size_Y","Workgroup_Size_Z","Grid_Size_X","Grid_Size_Y","Grid_Size_Z"
"KERNEL_DISPATCH","Agent 4",1,"void add<float>(float*, int)",1,1000,4000,64,1,1,1024,1,1
"KERNEL_DISPATCH","Agent 5",1,"mul",2,5000,6000,64,1,1,64,1,1
"KERNEL_DISPATCH","Agent 5",1,"mul",3,x,6000,64,1,1,64,1,1
"""


def record(
    kind: int, operation: int, number: int, begin: int, end: int, **more: Any
) -> dict[str, Any]:
    return {
        "kind": kind,
        "operation": operation,
        "thread_id": 7,
        "correlation_id": {"internal": number, "external": 0},
        "start_timestamp": begin * US,
        "end_timestamp": end * US,
        **more,
    }


def sizes(x: int) -> dict[str, int]:
    return {"x": x, "y": 1, "z": 1}


def tool(pid: int = 7) -> dict[str, Any]:
    dispatch = {
        "agent_id": {"handle": 22},
        "queue_id": {"handle": 1},
        "kernel_id": 5,
        "group_segment_size": 256,
        "workgroup_size": sizes(64),
        "grid_size": sizes(640),
    }
    copy = {"dst_agent_id": {"handle": 22}, "src_agent_id": {"handle": 11}, "bytes": 4096}
    return {
        "metadata": {"pid": pid, "node": {"hostname": SECRET}},
        "agents": [
            {"id": {"handle": 11}, "type": 1},
            {
                "id": {"handle": 22},
                "type": 2,
                "product_name": "AMD Instinct MI300X",
                "cu_count": 304,
            },
        ],
        "kernel_symbols": [
            {"kernel_id": 5, "formatted_kernel_name": "gemm", "kernel_name": "gemm.kd"}
        ],
        "strings": {"buffer_records": KINDS, "marker_api": [{"key": 9, "value": "forward"}]},
        "buffer_records": {
            "marker_api": [record(1, 1, 9, 0, 100)],
            "hip_api": [record(0, 0, 1, 10, 15), record(0, 1, 2, 120, 125)],
            "kernel_dispatch": [record(3, 0, 1, 30, 70, dispatch_info=dispatch)],
            "memory_copy": [record(2, 1, 2, 130, 140, **copy)],
        },
    }


def write(path: Path, *tools: object) -> Path:
    path.write_text(json.dumps({"rocprofiler-sdk-tool": tools}))
    return path


def paths(profile: Profile, name: str) -> list[str]:
    return [
        " > ".join(frame.name for frame in profile.path(node)[1:])
        for node in range(len(profile.tree))
        if profile.frame(node).name == name
    ]


def test_kernels_are_below_ranges(tmp_path: Path) -> None:
    profile = load(write(tmp_path / "a", tool()))
    assert paths(profile, "gemm") == ["MainThread > forward > gemm"]
    assert paths(profile, "Memcpy HtoD") == ["MainThread > Memcpy HtoD"]
    assert profile.metrics["queue_delay_ns"].total.tolist() == [20 * US, 10 * US]
    assert profile.metrics["grid_block_count"].total.tolist() == [10]
    assert profile.metrics["copy_bytes"].total.tolist() == [4096]
    assert "amd" in {each.name for each in profile.trust.collectors}


def test_processes_with_the_same_ids(tmp_path: Path) -> None:
    profile = load(write(tmp_path / "a", tool(), tool(8)))
    assert profile.trust.counters["launches_matched"] == 4
    assert profile.metrics["queue_delay_ns"].total.sum() == 60 * US


def test_the_table_of_kernels(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(CSV)
    profile = load(tmp_path / "a.csv")
    rows = profile.metrics["gpu_time_ns"]
    assert {profile.frame(n).name: t for n, t in zip(rows.node, rows.total, strict=True)} == {
        "void add<float>(float*, int)": 3000,
        "mul": 1000,
    }
    assert profile.metrics["grid_block_count"].total.tolist() == [16, 1]
    assert profile.trust.counters["events_without_times"] == 1


def test_the_report_names_amd_and_no_machine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "a", tool())
    for command in (["report", "--full"], ["analyze"], ["explain"]):
        assert main([*command, str(path)]) == 0
    text = capsys.readouterr().out
    assert "NVIDIA" not in text
    assert SECRET not in text


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (json.dumps({"rocprofiler-sdk-tool": [tool()]})[:-30], "damaged content"),
        (json.dumps({"rocprofiler-sdk-tool": []}), "no kernels"),
        (json.dumps({"rocprofiler-sdk-tool": [5]}), "damaged content"),
        (
            json.dumps({"rocprofiler-sdk-tool": [tool() | {"kernel_symbols": [{}]}]}),
            "kernel_id",
        ),
        (CSV.partition("\n")[0] + "\n", "no kernels"),
    ],
)
def test_damaged_files(tmp_path: Path, content: str, reason: str) -> None:
    (tmp_path / "a").write_text(content)
    with pytest.raises(ProfileDataError, match=reason) as caught:
        load(tmp_path / "a")
    assert "\n" not in str(caught.value)


@pytest.mark.traces
def test_a_real_file_equals_an_independent_count() -> None:
    path = Path(os.environ.get("DEEPCONTEXT_TRACES", "/nonexistent")) / "rocprofv3_results.json.gz"
    if not path.exists():
        pytest.skip("set DEEPCONTEXT_TRACES to a folder with rocprofv3_results.json.gz")
    with gzip.open(path) as file:
        (found,) = json.load(file)["rocprofiler-sdk-tool"]
    names = {each["kernel_id"]: each["formatted_kernel_name"] for each in found["kernel_symbols"]}
    counts: Counter[str] = Counter()
    times: Counter[str] = Counter()
    for each in found["buffer_records"]["kernel_dispatch"]:
        name = names[each["dispatch_info"]["kernel_id"]]
        counts[name] += 1
        times[name] += each["end_timestamp"] - each["start_timestamp"]
    profile = load(path)
    rows = profile.metrics["gpu_time_ns"]
    for node, count, total in zip(
        rows.node.tolist(), rows.count.tolist(), rows.total.tolist(), strict=True
    ):
        frame = profile.frame(node)
        assert frame.kind is FrameKind.KERNEL
        assert counts.pop(frame.name) == count
        assert times[frame.name] == pytest.approx(total, rel=1e-3)
    assert not counts
