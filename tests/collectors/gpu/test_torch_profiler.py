"""torch.profiler beside the profiler: one of the two has CUPTI, and the profile says who and when.

The fake CUPTI plays Kineto; `torch.autograd.profiler` is the real one, whose two functions that lead to
Kineto are replaced by the fake's.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from deepcontext import _native
from tests.collectors.gpu.test_flushing import wait_for

pytest.importorskip("torch")
import torch
import torch.autograd.profiler as torch_profiler

if TYPE_CHECKING:
    from collections.abc import Callable

    from kit import FakeGpu

    from tests.collectors.gpu.test_scenarios import Record

CUDA = {"ProfilerActivity.CPU", "ProfilerActivity.CUDA"}


class TorchProfiler:
    """torch.profiler with a GPU, as far as CUPTI sees it."""

    def __init__(self, nvidia: FakeGpu, *, older: bool) -> None:
        self.nvidia = nvidia
        self.older = older

    def begin(self) -> None:
        torch_profiler._prepare_profiler(None, CUDA)  # type: ignore[arg-type]
        torch_profiler._run_on_profiler_start()

    def end(self) -> None:
        torch_profiler._disable_profiler()
        torch_profiler._run_on_profiler_stop()

    def work(self, count: int) -> None:
        self.begin()
        launch(self.nvidia, "during", count)
        self.end()


def launch(nvidia: FakeGpu, name: str, count: int) -> None:
    nvidia.launch(name, us=10, count=count)
    nvidia.deliver()


@pytest.fixture
def profiler(nvidia: FakeGpu, monkeypatch: pytest.MonkeyPatch) -> Callable[..., TorchProfiler]:
    """torch.profiler, of which Kineto is the newer or the older."""

    def make(*, older: bool = False) -> TorchProfiler:
        made = TorchProfiler(nvidia, older=older)
        monkeypatch.setattr(
            torch_profiler, "_prepare_profiler", lambda *_: nvidia.profiler_begin(older=older)
        )
        monkeypatch.setattr(torch_profiler, "_disable_profiler", nvidia.profiler_end)
        return made

    return make


def test_a_use_inside_the_session_has_its_records_and_gives_them_back(
    record: Record, nvidia: FakeGpu, profiler: Callable[..., TorchProfiler]
) -> None:
    other = profiler()

    def work() -> None:
        launch(nvidia, "before", 10)
        other.work(20)
        launch(nvidia, "after", 30)

    recording = record(work)
    assert recording.total("gpu_time_ns") == 40 * 10_000  # also: CUPTI's clock is right again
    assert recording.counters["gpu_records_matched"] == 40
    assert nvidia.count("profiler_records") == 20
    assert nvidia.count("profiler_unknown_buffers") == 0
    assert recording.report.status == "degraded"
    assert "20 of 60 launches of GPU work ran while torch.profiler had CUPTI" in (
        recording.report.reason
    )
    assert "left no record" not in recording.report.reason


def test_an_older_one_that_is_first_used_inside_the_session_records_nothing(
    record: Record, nvidia: FakeGpu, profiler: Callable[..., TorchProfiler]
) -> None:
    other = profiler(older=True)

    def work() -> None:
        launch(nvidia, "before", 10)
        other.work(20)
        launch(nvidia, "after", 30)

    recording = record(work)
    assert recording.counters["gpu_records_matched"] == 60
    assert nvidia.count("profiler_records") == 0
    assert recording.report.status == "ran"
    assert any(
        "torch.profiler recorded no GPU work" in note for note in recording.profile.trust.notes
    )


def test_a_session_after_the_newer_one_sets_the_clock_right(
    record: Record, nvidia: FakeGpu, profiler: Callable[..., TorchProfiler]
) -> None:
    profiler().work(5)
    recording = record(lambda: launch(nvidia, "k", 30))
    assert recording.report.status == "ran"
    assert recording.total("gpu_time_ns") == 30 * 10_000
    assert recording.figure("clocks_set") == 1


def test_a_session_is_refused_where_the_clock_cannot_be_set_right(
    record: Record, nvidia: FakeGpu, profiler: Callable[..., TorchProfiler]
) -> None:
    profiler().work(5)
    nvidia.fail("cuptiActivityRegisterTimestampCallback", 27)
    recording = record(lambda: launch(nvidia, "k", 30))
    assert recording.report.status == "unavailable"
    assert "CUPTI's clock is far from the wall clock" in recording.report.reason


def test_a_session_after_an_older_one_names_it(
    record: Record, nvidia: FakeGpu, profiler: Callable[..., TorchProfiler]
) -> None:
    profiler(older=True).work(5)
    recording = record(lambda: launch(nvidia, "k", 30))
    assert recording.report.status == "unavailable"
    assert "'torch.profiler'" in recording.report.reason


def test_a_session_that_begins_during_a_use_waits_for_its_end(
    record: Record, nvidia: FakeGpu, profiler: Callable[..., TorchProfiler]
) -> None:
    other = profiler()
    other.begin()

    def work() -> None:
        launch(nvidia, "during", 20)
        other.end()
        launch(nvidia, "after", 30)

    recording = record(work)
    assert nvidia.count("profiler_records") == 20
    assert recording.counters["gpu_records_matched"] == 30
    assert "20 of 50 launches" in recording.report.reason
    assert recording.total("gpu_time_ns") == 30 * 10_000


def test_a_session_that_ends_during_a_use_leaves_it_its_records(
    record: Record, nvidia: FakeGpu, profiler: Callable[..., TorchProfiler]
) -> None:
    other = profiler()

    def work() -> None:
        launch(nvidia, "before", 10)
        other.begin()
        launch(nvidia, "during", 20)

    recording = record(work)
    assert nvidia.count("profiler_records") == 0  # its buffer was not flushed
    launch(nvidia, "still during", 5)
    other.end()
    assert nvidia.count("profiler_records") == 25
    assert recording.counters["gpu_records_matched"] == 10
    taken = "20 of 30 launches of GPU work ran while torch.profiler had CUPTI"
    assert taken in recording.report.reason


def test_nothing_is_fetched_during_a_use(
    record: Record,
    nvidia: FakeGpu,
    profiler: Callable[..., TorchProfiler],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The buffers are torch.profiler's, also when its launches are old."""
    monkeypatch.setenv("DEEPCONTEXT_GPU_BACKLOG_S", "0")
    other = profiler()

    def work() -> None:
        launch(nvidia, "before", 10)
        other.begin()
        launch(nvidia, "during", 20)
        for _ in range(3):
            _native.gpu_flush("cupti")
        assert _native.gpu_figures("cupti")["forced_flushes"] == 0
        other.end()

    recording = record(work)
    assert nvidia.count("profiler_records") == 20
    assert recording.counters["gpu_records_matched"] == 10


def test_nothing_is_fetched_early_during_a_use(
    record: Record, nvidia: FakeGpu, profiler: Callable[..., TorchProfiler]
) -> None:
    other = profiler()

    def work() -> None:
        other.begin()
        launch(nvidia, "during", 300_000)  # after so many, records are fetched
        time.sleep(0.5)  # there is nothing to wait for
        other.end()

    assert record(work).figure("early_flushes") == 0
    assert nvidia.count("profiler_records") == 300_000


def test_records_of_another_clock_have_no_time(record: Record, nvidia: FakeGpu) -> None:
    """They were written while CUPTI's clock was torch.profiler's, and come after it was set right."""

    def work() -> None:
        nvidia.take_over()
        nvidia.profiler_begin()
        nvidia.give_back()  # the buffers, not the clock
        nvidia.hold_buffers(holding=True)
        launch(nvidia, "other clock", 10)
        for is_running in (True, False):
            _native.gpu_yield(is_running)
        nvidia.hold_buffers(holding=False)
        launch(nvidia, "after", 30)

    recording = record(work)
    assert recording.counters["gpu_records_matched"] == 40
    assert recording.figure("bad_times") == 10
    assert recording.total("gpu_time_ns") == 30 * 10_000
    assert "10 of 40 records of GPU work carry no usable times" in recording.report.reason


def test_records_are_taken_back_from_a_tool_that_gave_no_notice(
    record: Record, nvidia: FakeGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEEPCONTEXT_GPU_BACKLOG_S", "0.01")

    def has_taken_back() -> bool:
        _native.gpu_flush("cupti")
        return _native.gpu_figures("cupti")["regains"] > 0

    def work() -> None:
        launch(nvidia, "before", 10)
        _native.gpu_flush("cupti")
        nvidia.profiler_begin()
        launch(nvidia, "during", 20)
        nvidia.profiler_end()
        wait_for(has_taken_back)
        launch(nvidia, "after", 30)

    recording = record(work)
    assert recording.counters["gpu_records_matched"] == 40
    assert recording.total("gpu_time_ns") == 40 * 10_000
    assert "20 of 60 launches of GPU work left no record" in recording.report.reason


@pytest.mark.long
def test_a_use_without_a_gpu_changes_nothing(record: Record, nvidia: FakeGpu) -> None:
    functions = torch_profiler._prepare_profiler, torch_profiler._disable_profiler

    def work() -> None:
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
            launch(nvidia, "k", 10)

    recording = record(work)
    assert recording.counters["gpu_records_matched"] == 10
    assert recording.figure("regains") == 0
    assert (torch_profiler._prepare_profiler, torch_profiler._disable_profiler) == functions


def test_torch_calls_the_two_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    """A torch with other names would not be noticed."""
    called = []
    prepare, disable = torch_profiler._prepare_profiler, torch_profiler._disable_profiler

    def noted_prepare(config: object, activities: object, **others: object) -> None:
        called.append("prepare")
        prepare(config, activities, **others)  # type: ignore[arg-type]

    def noted_disable() -> object:
        called.append("disable")
        return disable()

    monkeypatch.setattr(torch_profiler, "_prepare_profiler", noted_prepare)
    monkeypatch.setattr(torch_profiler, "_disable_profiler", noted_disable)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
        pass
    assert called == ["prepare", "disable"]
