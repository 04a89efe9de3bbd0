"""Samples of why instructions wait, below the kernels they were taken in."""

from __future__ import annotations

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


def wait_for(is_true: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not is_true():
        assert time.monotonic() < end
        time.sleep(0.01)


def wait_for_samples(count: int) -> None:
    """Wait until the sampler has read so many."""
    wait_for(lambda: _native.gpu_figures("cupti")["stall_samples"] >= count)


def wait_for_a_window() -> None:
    """Wait for a window that begins from now on, and its end."""
    target = _native.gpu_figures("cupti")["stall_windows"] + 2
    wait_for(lambda: _native.gpu_figures("cupti")["stall_windows"] >= target)


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
        wait_for_samples(17)

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
        wait_for_samples(5)

    assert places(record(work, stalls=True)) == {("wait", "", 0)}


def test_more_samples_than_one_reading_holds(record: Record, nvidia: FakeGpu) -> None:
    addresses = 10_000

    def work() -> None:
        nvidia.launch("k", us=1)
        nvidia.deliver()
        for _ in range(addresses):
            nvidia.stall("k", "barrier", 2)
        wait_for_samples(2 * addresses)

    recording = record(work, stalls=True)
    assert recording.total("stall_samples") == 2 * addresses
    assert nvidia.count("misuses") == 0


def test_samples_wait_for_the_kernels_records(record: Record, nvidia: FakeGpu) -> None:
    def work() -> None:
        nvidia.launch("late", us=5)
        nvidia.stall("late", "wait", 4)
        nvidia.stall("lost", "wait", 3)
        wait_for_samples(7)
        _native.gpu_flush("cupti")
        nvidia.deliver()

    samples = record(work, stalls=True).by_path("stall_samples")
    assert samples.pop(("work", "FakeGpu.launch", "late", "wait")) == 4
    ((path, count),) = samples.items()
    assert path == ("lost", "wait")  # under no call path
    assert count == 3


@pytest.mark.parametrize("device", [0, 1])
def test_contexts_of_one_device_are_sampled_in_turns(
    record: Record, nvidia: FakeGpu, device: int
) -> None:
    """CUPTI samples one context of a device at a time, contexts of two devices at once."""

    def work() -> None:
        nvidia.launch("first", us=1)
        nvidia.use_device(device)
        nvidia.use_context(1)
        nvidia.launch("second", us=1)
        nvidia.use_context(0)
        nvidia.use_device(0)
        nvidia.deliver()
        for total in (3, 6, 9, 12):
            wait_for_a_window()
            nvidia.stall("first", "wait", 3)
            wait_for_samples(total)

    recording = record(work, stalls=True)
    assert recording.report.status == "ran", recording.report.reason
    assert recording.figure("stall_samples") == 12
    assert nvidia.count("misuses") == 0


def test_a_context_may_go_while_it_is_sampled(record: Record, nvidia: FakeGpu) -> None:
    def work() -> None:
        for _ in range(3):
            nvidia.launch("k", us=1)
            wait_for_a_window()
            nvidia.destroy_context()
        nvidia.launch("k", us=1)
        nvidia.deliver()
        nvidia.stall("k", "wait", 6)
        wait_for_samples(6)

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


def test_windows_without_a_sample_are_said(record: Record, nvidia: FakeGpu) -> None:
    def work() -> None:
        nvidia.launch("k", us=1)
        nvidia.deliver()
        wait_for_a_window()

    assert "no stall was sampled in" in record(work, stalls=True).report.reason


def test_a_second_session_samples_again(record: Record, nvidia: FakeGpu) -> None:
    def work() -> None:
        nvidia.launch("k", us=1)
        nvidia.deliver()
        nvidia.stall("k", "selected", 4)
        wait_for_samples(4)

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
