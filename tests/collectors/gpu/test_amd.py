"""What only AMD's interfaces do: registration in time, two libraries, roctx ranges."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

import pytest

from deepcontext.collectors.gpu.amd import AmdGpu
from deepcontext.profiler.format.frame import FrameKind
from tests.collectors.gpu.test_lifecycle import run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from kit import FakeGpu

    from tests.collectors.gpu.conftest import Recording
    from tests.collectors.gpu.test_scenarios import Record


REPORT = """
    deepcontext.start()
    gpu.launch("k", us=1)
    gpu.deliver()
    profile = deepcontext.stop()
    report = next(c for c in profile.trust.collectors if c.name == "amd")
    print(report.status)
    print(report.reason)
"""


def test_a_runtime_that_is_up_is_too_late(sdk: FakeGpu) -> None:
    status, reason = run(sdk, "    gpu.start_runtime()" + REPORT).splitlines()
    assert status == "unavailable"
    assert "too late" in reason
    assert "deepcontext profile" in reason


def test_programs_do_not_hang_below_the_queue_interposition_of_1_3(sdk: FakeGpu) -> None:
    """Its signals never come; the variable of the program stays."""
    source = """
    import ctypes
    getenv = ctypes.CDLL(None).getenv
    getenv.restype = ctypes.c_char_p
    deepcontext.start()
    deepcontext.stop()
    print(getenv(b"ROCPROFILER_QUEUE_INTERPOSITION").decode())
    """
    assert run(sdk, source) == "0\n"
    assert run(sdk, source, ROCPROFILER_QUEUE_INTERPOSITION="1") == "1\n"


def test_records_that_come_after_the_wait_are_waited_for(record: Record, amd: FakeGpu) -> None:
    def deliver() -> None:
        time.sleep(0.15)
        amd.deliver()

    thread = threading.Thread(target=deliver)

    def work() -> None:
        amd.launch("k", us=1, count=5)
        thread.start()

    recording = record(work)
    thread.join()
    assert recording.counters["gpu_records_matched"] == 5
    assert recording.report.status == "ran"


def test_a_launch_that_another_thread_dispatches_is_counted(record: Record, sdk: FakeGpu) -> None:
    def work() -> None:
        sdk.launch("own", us=1)
        sdk.dispatch("another thread's")
        sdk.deliver()

    recording = record(work)
    assert recording.figure("foreign_launches") == 1
    assert "dispatched by another thread" in recording.report.reason


def test_a_doorbell_that_yields_no_records_is_warned_of(
    sdk: FakeGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert sdk.vendor.name == "amd"
    assert "DEBUG_CLR_DIRECT_DOORBELL" not in AmdGpu().probe().reason
    monkeypatch.setenv("DEBUG_CLR_DIRECT_DOORBELL", "1")
    assert "DEBUG_CLR_DIRECT_DOORBELL" in AmdGpu().probe().reason


def test_doctor_names_a_hip_that_crashes(sdk: FakeGpu, monkeypatch: pytest.MonkeyPatch) -> None:
    assert sdk.vendor.name == "amd"
    assert "192580" not in AmdGpu().probe().reason
    monkeypatch.setenv("FAKE_FAULTS", "hip_version=70226015")
    assert "HIP 7.2 crashes on some cards" in AmdGpu().probe().reason


@pytest.mark.parametrize(
    ("version", "interposition", "is_named"),
    [(10302, "1", True), (10302, "0", False), (10302, "", False), (10201, "1", False)],
)
def test_a_release_that_hangs_is_named(
    sdk: FakeGpu,
    monkeypatch: pytest.MonkeyPatch,
    version: int,
    interposition: str,
    *,
    is_named: bool,
) -> None:
    sdk.version(version)
    monkeypatch.setenv("ROCPROFILER_QUEUE_INTERPOSITION", interposition)
    assert ("rocprofiler-sdk 1.3 hangs programs" in AmdGpu().probe().reason) == is_named


def test_a_locked_registration_is_explained(sdk: FakeGpu) -> None:
    source = "    gpu.fail('rocprofiler_force_configure', 16)" + REPORT
    status, reason = run(sdk, source).splitlines()
    assert status == "unavailable"
    assert "outside of valid rocprofiler configuration period" in reason


@pytest.mark.parametrize(
    ("function", "what"),
    [
        ("rocprofiler_create_context", "rocprofiler_create_context"),
        ("rocprofiler_create_buffer", "rocprofiler_create_buffer"),
        ("rocprofiler_configure_buffer_tracing_service:11", "asking for kernels"),
        ("rocprofiler_configure_buffer_tracing_service:10", "asking for copies"),
        ("rocprofiler_configure_callback_tracing_service:10", "asking for kernel names"),
        ("rocprofiler_configure_external_correlation_id_request_service", "asking for launches"),
        ("rocprofiler_start_context", "rocprofiler_start_context"),
    ],
)
def test_every_refused_service_is_named(sdk: FakeGpu, function: str, what: str) -> None:
    status, reason = run(sdk, f"    gpu.fail({function!r}, 40)" + REPORT).splitlines()
    assert status == "unavailable"
    assert what in reason
    assert "groups 'video' and 'render'" in reason


def test_a_library_before_1_0_is_refused(sdk: FakeGpu) -> None:
    sdk.version(500)
    found = AmdGpu().probe()
    assert not found.available
    assert "0.5.0 is older than 1.0" in found.reason
    assert "upgrade to ROCm 7" in found.reason


def test_probe_names_the_interface(amd: FakeGpu) -> None:
    found = AmdGpu().probe()
    assert found.available
    version = "1.2.1" if amd.vendor.interface == "rocprofiler" else "4.1"
    assert f"{amd.vendor.interface} {version}" in found.reason


def test_probe_without_rocm_says_so(
    amd: FakeGpu, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for variable in amd.vendor.variables:
        monkeypatch.setenv(variable, str(tmp_path / "nothing.so"))
    found = AmdGpu().probe()
    assert not found.available
    assert "no profiling library of ROCm can be used" in found.reason
    assert "cannot be loaded" in found.reason


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("ROCP_TOOL_LIBRARIES", "/opt/rocm/lib/other-tool.so"),
        ("HSA_TOOLS_LIB", "/opt/rocm/lib/librocprofiler64.so"),
    ],
)
def test_another_tool_is_said(
    record: Record, sdk: FakeGpu, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)

    def work() -> None:
        sdk.launch("k", us=1)
        sdk.deliver()

    recording = record(work)
    assert recording.report.status == "degraded"
    assert f"${variable}={value}" in recording.report.reason


def test_roctx_ranges_are_frames(record: Record, amd: FakeGpu) -> None:
    def work() -> None:
        amd.range_push("epoch")
        amd.range_push("TSL:Thunk:#name=fusion,hlo_op=fusion.3#")
        amd.launch("inside", us=1)
        amd.range_pop()
        amd.launch("between", us=1)
        amd.range_pop()
        amd.range_pop()  # one too many
        amd.launch("outside", us=1)
        amd.deliver()

    recording = record(work)
    kinds = frames_above(recording)
    assert kinds["inside"] == [("epoch", FrameKind.SCOPE), ("fusion.3", FrameKind.HLO)]
    assert kinds["between"] == [("epoch", FrameKind.SCOPE)]
    assert kinds["outside"] == []


def test_a_command_buffer_of_xla_keeps_the_operations_it_was_made_in(
    record: Record, sdk: FakeGpu
) -> None:
    """Made node by node inside XLA's ranges, changed and replayed outside of them."""

    def work() -> None:
        graph = sdk.graph()
        for operation in ("fusion.3", "dot.1"):
            sdk.range_push(f"TSL:Thunk:#name=call,hlo_op={operation}#")
            sdk.add_node(graph, f"kernel_{operation}", us=2)
            sdk.range_pop()
        executable = sdk.instantiate(graph)
        for _ in range(4):
            sdk.set_node(executable, 0, "kernel_fusion.3", us=5)
            sdk.replay(executable)
        sdk.deliver(shuffle=2)

    recording = record(work)
    assert frames_above(recording) == {
        f"kernel_{operation}": [(operation, FrameKind.HLO)] for operation in ("fusion.3", "dot.1")
    }
    assert set(recording.kernels().values()) == {4}
    assert recording.total("gpu_time_ns") == 4 * (5_000 + 2_000)
    assert recording.figure("graph_captured") == 8


def frames_above(recording: Recording) -> dict[str, list[tuple[str, FrameKind]]]:
    """Scopes and HLO frames above each kernel."""
    profile = recording.profile
    found = {}
    for node in profile.metrics["gpu_time_ns"].node.tolist():
        frames = [profile.frame(at) for at in profile.tree.path(node)]
        found[frames[-1].name] = [
            (frame.name, FrameKind(frame.kind))
            for frame in frames
            if frame.kind in {FrameKind.SCOPE, FrameKind.HLO}
        ]
    return found


def test_the_interface_for_stalls_is_said_to_be_missing(record: Record, amd: FakeGpu) -> None:
    def work() -> None:
        amd.launch("k", us=1)
        amd.deliver()

    assert "stalls are not sampled" in record(work, stalls=True).report.reason


def devices_of(recording: Recording) -> dict[int, int]:
    """Busy time of each device, in ns."""
    section = json.loads(recording.profile.sections["gpu_amd"])
    return {device["device"]: device["busy_ns"] for device in section["devices"]}


@pytest.mark.parametrize(
    ("variables", "ordinals"),
    [
        ({}, {0: 0, 3: 3}),
        ({"HIP_VISIBLE_DEVICES": "3,0"}, {0: 1, 3: 0}),
        ({"CUDA_VISIBLE_DEVICES": "0,3"}, {0: 0, 3: 1}),
        ({"ROCR_VISIBLE_DEVICES": "2,3,0", "HIP_VISIBLE_DEVICES": "1,2"}, {0: 1, 3: 0}),
        ({"ROCR_VISIBLE_DEVICES": "GPU-A100000000000003,0"}, {0: 1, 3: 0}),
    ],
)
def test_devices_are_numbered_as_hip_does(
    record: Record,
    sdk: FakeGpu,
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    ordinals: dict[int, int],
) -> None:
    def work() -> None:
        for name, value in variables.items():  # by the program, before it uses the GPU
            monkeypatch.setenv(name, value)
        sdk.use_device(0)
        sdk.launch("on the first", us=5)
        sdk.use_device(3)
        sdk.launch("on the last", us=7, stream=0)  # the copy's: it waits for the kernel
        sdk.copy("DtoH", 64, us=20)
        sdk.use_device(0)
        sdk.deliver()

    assert devices_of(record(work)) == {ordinals[0]: 5_000, ordinals[3]: 27_000}


def test_the_stop_waits_for_every_device_in_use(record: Record, amd: FakeGpu) -> None:
    def work() -> None:
        amd.launch("on the first", us=5)
        amd.use_device(2)
        amd.launch("on the third", us=5)
        amd.use_device(0)
        amd.deliver()

    record(work)
    assert [amd.was_waited_for(device) for device in range(4)] == [True, False, True, False]


def test_the_run_time_is_told_which_library_to_load(sdk: FakeGpu) -> None:
    """Otherwise it ends a program whose search path has another copy of the library, or none."""
    source = """
        deepcontext.start()
        import ctypes
        getenv = ctypes.CDLL(None).getenv
        getenv.restype = ctypes.c_char_p
        print(getenv(b"ROCPROFILER_REGISTER_LIBRARY").decode())
        deepcontext.stop()
        """
    assert run(sdk, source).strip() == sdk.environment()["DEEPCONTEXT_LIBROCPROFILER"]
    own = {"ROCPROFILER_REGISTER_LIBRARY": "/opt/rocm/lib/librocprofiler-sdk.so"}
    assert run(sdk, source, **own).strip() == own["ROCPROFILER_REGISTER_LIBRARY"]


def graph_kernels(sdk: FakeGpu, record: Record, between: Callable[[], None]) -> Recording:
    """Capture two kernels with something between them, and replay them three times."""

    def work() -> None:
        sdk.capture_begin()
        sdk.launch("first", us=10)
        between()
        sdk.launch("second", us=2)
        executable = sdk.instantiate(sdk.capture_end())
        for _ in range(3):
            sdk.replay(executable)
        sdk.deliver()

    return record(work)


def captures_of(recording: Recording) -> dict[str, int]:
    """Kernels that are shown under the call that captured them."""
    return {
        path[-1]: count
        for path, count in recording.kernels().items()
        if "graph replay" in path and path[-2].startswith("FakeGpu.")
    }


def test_a_captured_memset_is_a_kernel_of_the_graph(record: Record, sdk: FakeGpu) -> None:
    recording = graph_kernels(sdk, record, lambda: sdk.memset(1024))
    assert captures_of(recording) == {
        "first": 3,
        "__amd_rocclr_fillBufferAligned": 3,
        "second": 3,
    }
    assert recording.figure("graphs_out_of_order") == 0


def test_a_captured_copy_from_the_host_is_no_kernel(record: Record, sdk: FakeGpu) -> None:
    recording = graph_kernels(sdk, record, lambda: sdk.copy("HtoD", 64))
    assert captures_of(recording) == {"first": 3, "second": 3}
    assert recording.figure("graphs_out_of_order") == 0
    assert recording.figure("copies") == 3


def test_a_graph_that_runs_other_kernels_loses_its_nodes(record: Record, sdk: FakeGpu) -> None:
    recording = graph_kernels(sdk, record, lambda: sdk.copy("DtoD", 64))
    kernels = recording.kernels()
    # The difference is not known until the first replay has ended.
    assert sum(captures_of(recording).values()) == 2
    unknown = [path for path in kernels if "graph replay (captured before profiling)" in path]
    assert sum(kernels[path] for path in unknown) == 7
    assert recording.figure("graphs_out_of_order") == 1
    assert "1 graphs ran another number of kernels" in " ".join(recording.profile.trust.notes)


def test_a_buffer_that_roctracer_reads_in_part_is_a_loss(
    record: Record, roctracer: FakeGpu
) -> None:
    def work() -> None:
        roctracer.launch("k", us=1, count=10)
        roctracer.deliver()
        roctracer.fail("roctracer_next_record", -1)

    recording = record(work)
    assert recording.counters["gpu_records_received"] == 1
    assert recording.report.status == "degraded"
    assert "1 buffers of GPU records could not be read to their end" in recording.report.reason


def test_memory_taken_from_the_driver(record: Record, sdk: FakeGpu) -> None:
    def work() -> None:
        for _ in range(3):
            sdk.allocate(1 << 20)
        sdk.allocate(1 << 30, host=True)

    recording = record(work)
    path = ("work", "FakeGpu.allocate")
    assert recording.by_path("driver_alloc_bytes") == {path: 3 << 20}
    assert recording.by_path("driver_alloc_bytes", count=True) == {path: 3}
    assert recording.report.status == "ran"


def test_without_the_allocation_service_the_rest_goes_on(sdk: FakeGpu) -> None:
    source = "    gpu.fail('rocprofiler_configure_callback_tracing_service:16', 40)" + REPORT
    status, reason = run(sdk, source).splitlines()
    assert status == "degraded"
    assert "memory taken from the driver is not recorded" in reason


CALLS = """
        for gpu_calls in {sessions}:
            manager = SessionManager()
            manager.start(None, SessionOptions(gpu_calls=gpu_calls), [PythonFrames, AmdGpu])
            gpu.allocate(64)
            gpu.launch("k", us=1)
            gpu.deliver()
            profile = deepcontext.Profile.from_bytes(manager.stop().encode())
            rows = profile.metrics.get("gpu_api_ns")
            print([profile.frame(node).name for node in (rows.node.tolist() if rows else [])])
            print(next(c.reason for c in profile.trust.collectors if c.name == "amd"))
        """
IMPORTS = """
        from deepcontext.collectors.gpu.amd import AmdGpu
        from deepcontext.collectors.python.frames import PythonFrames
        from deepcontext.profiler.recording.options import SessionOptions
        from deepcontext.profiler.recording.session_manager import SessionManager
"""


def test_every_call_that_does_something_is_timed_if_the_first_session_asks(sdk: FakeGpu) -> None:
    output = run(sdk, IMPORTS + CALLS.format(sessions=(True, False))).splitlines()
    assert sorted(output[0].strip("[]").split(", ")) == ["'hipLaunchKernel'", "'hipMalloc'"]
    assert output[1:] == ["", "[]", ""]


def test_a_later_session_cannot_ask_for_more_calls(sdk: FakeGpu) -> None:
    output = run(sdk, IMPORTS + CALLS.format(sessions=(False, True))).splitlines()
    assert output[:3] == ["[]", "", "['hipLaunchKernel']"]
    assert "the first session did not want all" in output[3]


def doctor(amd: FakeGpu, **environment: str) -> str:
    """What `deepcontext doctor` says about AMD's collector."""
    done = subprocess.run(
        [sys.executable, "-m", "deepcontext", "doctor", "--json"],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    checks = json.loads(done.stdout)["checks"]
    (check,) = (c for c in checks if (c["group"], c["name"]) == ("collectors", "amd"))
    return f"{check['is_available']}: {check['detail']}"


def test_doctor_says_what_amd_needs(amd: FakeGpu, tmp_path: Path) -> None:
    found = doctor(amd)
    assert found.startswith(f"True: {amd.vendor.interface} ")
    assert "must register before the program first uses the GPU" in found
    assert "stalls (--stalls) are not sampled" in found
    assert "$ROCPROFILER_PC_SAMPLING_BETA_ENABLED" in found
    assert "another ROCm tool" not in found
    nothing = dict.fromkeys(amd.vendor.variables, str(tmp_path / "nothing.so"))
    missing = doctor(amd, **nothing)
    assert missing.startswith("False: no profiling library of ROCm can be used")


def test_doctor_says_that_there_are_two_tools(sdk: FakeGpu) -> None:
    tool = "/opt/rocm/lib/librocprofiler-sdk-tool.so"
    found = doctor(sdk, ROCP_TOOL_LIBRARIES=tool)
    assert f"$ROCP_TOOL_LIBRARIES={tool} loads another ROCm tool" in found


def test_a_tool_that_is_loaded_before_the_program_is_seen(
    sdk: FakeGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LD_PRELOAD", "/opt/rocm/lib/librocprofiler-sdk-tool.so")
    assert "$LD_PRELOAD=" in AmdGpu().probe().reason
    monkeypatch.setenv("LD_PRELOAD", "/usr/lib/libjemalloc.so.2")
    assert "$LD_PRELOAD" not in AmdGpu().probe().reason
