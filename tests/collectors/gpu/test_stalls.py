"""Samples of why instructions wait, below the kernels they were taken in."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import pytest

from deepcontext import _native
from deepcontext.profiler.format.frame import FrameKind
from tests.collectors.gpu.test_lifecycle import run

if TYPE_CHECKING:
    from collections.abc import Callable

    from kit import FakeGpu

    from tests.collectors.gpu.conftest import Recording
    from tests.collectors.gpu.test_scenarios import Record

PATIENCE_S = 20
OUT_OF_MEMORY = 8
CONSENT = "DEEPCONTEXT_GPU_STALLS"


@pytest.fixture(autouse=True)
def _consent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CONSENT, "may-hang")


def test_without_consent_nothing_is_sampled(
    record: Record, nvidia: FakeGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sampling hung programs on hardware."""
    monkeypatch.delenv(CONSENT)

    def work() -> None:
        nvidia.launch("k", us=1, count=3)
        nvidia.stall("k", "wait", 5)
        time.sleep(0.5)
        nvidia.deliver()

    recording = record(work, stalls=True)
    assert recording.report.status == "degraded"
    assert f"{CONSENT}=may-hang" in recording.report.reason
    assert recording.counters["gpu_records_matched"] == 3
    assert recording.figure("stall_windows") == 0


def step_until(gpu: FakeGpu, is_true: Callable[[], bool]) -> None:
    """Launch until something is true, because windows begin and end at launches."""
    end = time.monotonic() + PATIENCE_S
    while not is_true():
        assert time.monotonic() < end
        gpu.copy("HtoD", 0)  # no bytes: a launch without a record
        time.sleep(0.005)


def figure(name: str) -> int:
    return int(_native.gpu_figures("cupti")[name])


def sample(gpu: FakeGpu, count: int) -> None:
    """Launch until the sampler has read so many samples."""
    step_until(gpu, lambda: figure("stall_samples") >= count)


def pass_a_window(gpu: FakeGpu) -> None:
    """Launch until a window that begins from now on has ended."""
    target = figure("stall_windows") + 2
    step_until(gpu, lambda: figure("stall_windows") >= target)


def pass_without_a_window(gpu: FakeGpu) -> None:
    """Launch for longer than a window and the pause before it; one window may have begun before."""
    before = figure("stall_windows")
    for _ in range(10):
        gpu.copy("HtoD", 0)
        time.sleep(0.05)
    assert figure("stall_windows") <= before + 1


def places(recording: Recording) -> set[tuple[str, str, int]]:
    return {
        (frame.name, frame.file, frame.line)
        for node in recording.profile.metrics["stall_samples"].node.tolist()
        if (frame := recording.profile.frame(node)).kind == FrameKind.STALL
    }


def test_samples_are_shared_out_by_time(record: Record, nvidia: FakeGpu) -> None:
    def often() -> None:
        nvidia.launch("gemm", us=30)

    def seldom() -> None:
        nvidia.launch("gemm", us=10)

    def work() -> None:
        nvidia.load_module()
        often()
        seldom()
        nvidia.deliver()
        nvidia.stall("gemm", "long_scoreboard", 10, line=12)
        nvidia.stall("gemm", "wait", 3)
        nvidia.stall("gemm", "math_pipe_throttle", 4, line=99)
        sample(nvidia, 17)

    recording = record(work, stalls=True)
    samples = recording.by_path("stall_samples")
    assert sum(samples.values()) == 17
    assert samples["work", "often", "FakeGpu.launch", "gemm", "math_pipe_throttle"] == 3
    assert samples["work", "seldom", "FakeGpu.launch", "gemm", "math_pipe_throttle"] == 1
    assert recording.figure("stall_samples") == 17
    assert places(recording) == {
        ("long_scoreboard", "/src/kernel.cu", 12),
        ("wait", "", 0),
        ("math_pipe_throttle", "/src/kernel.cu", 99),
    }
    assert recording.report.status == "ran"
    assert nvidia.count("misuses") == 0


def test_modules_loaded_before_have_no_lines(record: Record, nvidia: FakeGpu) -> None:
    nvidia.load_module()

    def work() -> None:
        nvidia.launch("k", us=1)
        nvidia.deliver()
        nvidia.stall("k", "wait", 5, line=12)
        sample(nvidia, 5)

    assert places(record(work, stalls=True)) == {("wait", "", 0)}


def test_more_samples_than_one_reading_holds(record: Record, nvidia: FakeGpu) -> None:
    addresses = 10_000

    def work() -> None:
        nvidia.launch("k", us=1)
        nvidia.deliver()
        for _ in range(addresses):
            nvidia.stall("k", "barrier", 2)
        sample(nvidia, 2 * addresses)

    recording = record(work, stalls=True)
    assert recording.total("stall_samples") == 2 * addresses
    assert nvidia.count("misuses") == 0


def test_samples_wait_for_the_kernels_records(record: Record, nvidia: FakeGpu) -> None:
    def work() -> None:
        nvidia.launch("late", us=5)
        nvidia.stall("late", "wait", 4)
        nvidia.stall("lost", "wait", 3)
        sample(nvidia, 7)
        _native.gpu_flush("cupti")
        nvidia.deliver()

    samples = record(work, stalls=True).by_path("stall_samples")
    assert samples.pop(("work", "FakeGpu.launch", "late", "wait")) == 4
    ((path, count),) = samples.items()
    assert path == ("lost", "wait")  # under no call path
    assert count == 3


def test_one_context_of_a_device_is_sampled(record: Record, nvidia: FakeGpu) -> None:
    """CUPTI samples one at a time; launches in another one neither begin nor end its windows."""

    def work() -> None:
        nvidia.launch("first", us=1)
        pass_a_window(nvidia)
        nvidia.use_context(1)
        nvidia.launch("second", us=1)
        nvidia.use_context(0)
        nvidia.deliver()
        nvidia.stall("first", "wait", 3)
        sample(nvidia, 3)

    recording = record(work, stalls=True)
    assert recording.report.status == "ran", recording.report.reason
    assert nvidia.count("misuses") == 0


def test_several_devices_are_not_sampled(record: Record, nvidia: FakeGpu) -> None:
    def work() -> None:
        nvidia.launch("first", us=1)
        nvidia.use_device(1)
        nvidia.launch("second", us=1)
        nvidia.use_device(0)
        nvidia.deliver()
        pass_without_a_window(nvidia)

    assert "the program uses several GPUs" in record(work, stalls=True).report.reason
    assert nvidia.count("misuses") == 0


def test_kernels_of_nccl_end_the_sampling(record: Record, nvidia: FakeGpu) -> None:
    """They wait for each other across ranks, and in a window kernels run one after the other."""

    def work() -> None:
        nvidia.launch("ncclDevKernel_AllReduce_Sum_f32_RING_LL", us=1)
        nvidia.deliver()
        _native.gpu_flush("cupti")
        pass_without_a_window(nvidia)

    assert "kernels of NCCL" in record(work, stalls=True).report.reason


def test_a_rank_of_a_job_is_not_sampled(
    record: Record, nvidia: FakeGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")

    def work() -> None:
        nvidia.launch("k", us=1)
        nvidia.deliver()
        pass_without_a_window(nvidia)

    recording = record(work, stalls=True)
    assert "one of 2 ranks" in recording.report.reason
    assert recording.figure("stall_windows") == 0


def test_sampling_is_enabled_before_the_first_module_is_loaded(
    record: Record, nvidia: FakeGpu
) -> None:
    def work() -> None:
        nvidia.create_context()
        assert nvidia.count("sampled") == 1
        nvidia.launch("k", us=1)
        nvidia.deliver()
        nvidia.stall("k", "wait", 3)
        sample(nvidia, 3)
        nvidia.destroy_context()
        assert nvidia.count("sampled") == 0

    recording = record(work, stalls=True)
    assert recording.report.status == "ran"
    assert recording.counters["gpu_records_matched"] == 1
    assert nvidia.count("misuses") == 0


def test_a_full_buffer_of_the_device_is_emptied_once(record: Record, nvidia: FakeGpu) -> None:
    """CUPTI then finds nothing until it is enabled again."""

    def work() -> None:
        nvidia.launch("k", us=1)
        nvidia.deliver()
        nvidia.fail("cuptiPCSamplingGetData", OUT_OF_MEMORY)
        pass_a_window(nvidia)

    def once() -> None:
        nvidia.launch("k", us=1)
        nvidia.deliver()
        nvidia.fail("cuptiPCSamplingGetData", OUT_OF_MEMORY)
        step_until(nvidia, lambda: figure("stall_windows") == 1)
        nvidia.fail("cuptiPCSamplingGetData", 0)
        nvidia.stall("k", "wait", 3)
        sample(nvidia, 3)

    recording = record(once, stalls=True)
    assert recording.report.status == "ran"
    assert "CUPTI_ERROR_OUT_OF_MEMORY" in record(work, stalls=True).report.reason
    nvidia.fail("cuptiPCSamplingGetData", 0)
    assert nvidia.count("misuses") == 0


@pytest.mark.long
@pytest.mark.parametrize("function", ["cuptiPCSamplingStart", "cuptiPCSamplingGetData"])
def test_a_call_that_does_not_return_delays_the_program_once(
    nvidia: FakeGpu, function: str
) -> None:
    output = run(
        nvidia,
        f"""
        import os, threading
        deepcontext.start(stalls=True)
        gpu.launch("k", us=1)
        time.sleep(0.5)
        gpu.hang("{function}", 60)
        def step():
            while True:
                gpu.launch("k", us=1)
                time.sleep(0.001)
        threading.Thread(target=step, daemon=True).start()
        while not gpu.count("hanging"):
            time.sleep(0.001)
        delayed = 0
        for _ in range(50):
            begun = time.monotonic()
            gpu.launch("k", us=1)
            delayed += time.monotonic() - begun > 0.5
        print(delayed)
        profile = deepcontext.stop()
        print(next(c for c in profile.trust.collectors if c.name == vendor.name).reason)
        sys.stdout.flush()
        os._exit(0)
        """,
        DEEPCONTEXT_GPU_DEADLINE_S="0.5",
    )
    first, reason = output.split("\n", 1)
    assert int(first) <= 1
    assert "abandoned" in reason


def test_a_hanging_call_of_the_only_thread_is_said(nvidia: FakeGpu) -> None:
    """Nothing can free the thread; the profile at least says so."""
    output = run(
        nvidia,
        """
        import os, threading
        deepcontext.start(stalls=True)
        gpu.hang("cuptiPCSamplingStart", 60)
        threading.Thread(target=lambda: gpu.launch("k", us=1), daemon=True).start()
        while not gpu.count("hanging"):
            time.sleep(0.001)
        time.sleep(1.1)
        profile = deepcontext.stop()
        print(next(c for c in profile.trust.collectors if c.name == vendor.name).reason)
        sys.stdout.flush()
        os._exit(0)
        """,
        DEEPCONTEXT_GPU_DEADLINE_S="0.5",
    )
    assert "abandoned" in output


def test_functions_that_load_code_while_windows_begin_and_end(nvidia: FakeGpu) -> None:
    """The driver loads code when a kernel is asked for, below its lock and CUPTI's."""
    output = run(
        nvidia,
        """
        import threading
        from deepcontext import _native
        deepcontext.start(stalls=True)
        gpu.lazy_loading()
        end = time.monotonic() + 3
        def load(name):
            number = 0
            while time.monotonic() < end:
                gpu.get_function(f"{name} {number}")
                gpu.call_without_callback(us=5)
                gpu.launch(name, us=1, count=100)  # without the GIL, which a flush may have
                number += 1
        threads = [threading.Thread(target=load, args=(name,)) for name in "ab"]
        for thread in threads:
            thread.start()
        while time.monotonic() < end:
            gpu.launch("k", us=1)
            _native.gpu_flush("cupti")
        for thread in threads:
            thread.join()
        gpu.deliver()
        print(_native.gpu_figures("cupti")["stall_windows"] > 0, gpu.count("misuses"))
        deepcontext.stop()
        """,
    )
    assert output.split() == ["True", "0"]


def test_a_captured_graph_outlives_the_windows(record: Record, nvidia: FakeGpu) -> None:
    """A window begins with a wait for the device, which would end a capture."""

    def work() -> None:
        nvidia.launch("k", us=1)
        nvidia.capture_begin()
        pass_without_a_window(nvidia)
        nvidia.capture_end()
        nvidia.deliver()
        pass_a_window(nvidia)

    record(work, stalls=True)
    assert nvidia.count("misuses") == 0


@pytest.mark.long
def test_another_thread_ends_the_window_of_one_that_is_gone(
    record: Record, nvidia: FakeGpu
) -> None:
    def work() -> None:
        thread = threading.Thread(target=nvidia.launch, args=("k", 1))
        thread.start()
        thread.join()
        nvidia.deliver()
        nvidia.stall("k", "wait", 3)
        begun = time.monotonic()
        sample(nvidia, 3)
        assert time.monotonic() - begun > 4

    assert record(work, stalls=True).report.status == "ran"
    assert nvidia.count("misuses") == 0


def test_a_context_may_go_while_it_is_sampled(record: Record, nvidia: FakeGpu) -> None:
    def work() -> None:
        for _ in range(3):
            nvidia.launch("k", us=1)
            pass_a_window(nvidia)
            nvidia.destroy_context()
        nvidia.launch("k", us=1)
        nvidia.deliver()
        nvidia.stall("k", "wait", 6)
        sample(nvidia, 6)

    recording = record(work, stalls=True)
    assert recording.total("stall_samples") == 6
    assert recording.report.status == "ran"
    assert nvidia.count("misuses") == 0


def test_nothing_is_sampled_unless_asked_for(record: Record, nvidia: FakeGpu) -> None:
    def work() -> None:
        nvidia.launch("k", us=1)
        nvidia.deliver()
        nvidia.stall("k", "wait", 3)
        time.sleep(0.1)

    recording = record(work)
    assert "stall_samples" not in recording.profile.metrics
    assert recording.figure("stall_windows") == 0
    assert recording.report.status == "ran"


@pytest.mark.parametrize(
    "function",
    [
        "cuptiPCSamplingEnable",
        "cuptiPCSamplingGetNumStallReasons",
        "cuptiPCSamplingSetConfigurationAttribute",
        "cuptiPCSamplingStart",
    ],
)
def test_a_missing_permission_is_named(record: Record, nvidia: FakeGpu, function: str) -> None:
    nvidia.fail(function, 35)

    def work() -> None:
        nvidia.launch("k", us=1)
        nvidia.deliver()
        time.sleep(0.5)

    recording = record(work, stalls=True)
    assert recording.report.status == "degraded"
    assert "stalls are not sampled" in recording.report.reason
    assert "NVreg_RestrictProfilingToAdminUsers=0" in recording.report.reason
    assert recording.counters["gpu_records_matched"] == 1


def test_counters_that_another_process_has(record: Record, nvidia: FakeGpu) -> None:
    nvidia.fail("cuptiPCSamplingEnable", 26)

    def work() -> None:
        nvidia.launch("k", us=1)
        nvidia.deliver()

    assert "dcgmi profile --pause" in record(work, stalls=True).report.reason


def test_windows_without_a_sample_are_said(record: Record, nvidia: FakeGpu) -> None:
    def work() -> None:
        nvidia.launch("k", us=1)
        nvidia.deliver()
        pass_a_window(nvidia)

    assert "no stall was sampled in" in record(work, stalls=True).report.reason


def test_a_second_session_samples_again(record: Record, nvidia: FakeGpu) -> None:
    def work() -> None:
        nvidia.launch("k", us=1)
        nvidia.deliver()
        nvidia.stall("k", "selected", 4)
        sample(nvidia, 4)

    for _ in range(2):
        assert record(work, stalls=True).total("stall_samples") == 4
    assert nvidia.count("misuses") == 0


def test_sampling_goes_on_after_a_fork(nvidia: FakeGpu) -> None:
    output = run(
        nvidia,
        """
        import os, warnings
        warnings.simplefilter("error")
        deepcontext.start(stalls=True)
        gpu.launch("k", us=1)
        gpu.deliver()
        from deepcontext import _native
        def wait_for(figure, least):
            end = time.monotonic() + 20
            while _native.gpu_figures("cupti")[figure] < least and time.monotonic() < end:
                gpu.copy("HtoD", 0)
                time.sleep(0.01)
        wait_for("stall_windows", 1)
        child = os.fork()
        if child == 0:
            os._exit(len(os.listdir("/proc/self/task")))
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status))
        gpu.stall("k", "wait", 9)
        wait_for("stall_samples", 9)
        print(int(deepcontext.stop().metrics["stall_samples"].total.sum()))
        """,
    )
    assert output.split() == ["1", "9"]


def test_a_hanging_stop_ends_with_the_deadline(nvidia: FakeGpu) -> None:
    output = run(
        nvidia,
        """
        import os
        deepcontext.start(stalls=True)
        gpu.launch("k", us=1)
        gpu.deliver()
        gpu.hang("cuptiPCSamplingStop", 30)
        time.sleep(1)  # a window ends within
        begun = time.monotonic()
        profile = deepcontext.stop()
        print(time.monotonic() - begun < 10)
        print(next(c for c in profile.trust.collectors if c.name == vendor.name).reason)
        sys.stdout.flush()
        os._exit(0)  # the hanging call is still out
        """,
        DEEPCONTEXT_GPU_DEADLINE_S="0.5",
    )
    assert output.startswith("True\n")
    assert "did not return within" in output
