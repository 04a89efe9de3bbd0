"""Every launch is accounted for: GPU time that a profile lacks is said with its number and its cause."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from deepcontext import _native
from deepcontext.collectors.gpu.collection import GpuCollection, Interface
from deepcontext.profiler.recording.options import SessionOptions
from tests.collectors.gpu.test_scenarios import assert_conserved

if TYPE_CHECKING:
    from kit import FakeGpu

    from tests.collectors.gpu.test_scenarios import Record


@pytest.mark.long
def test_records_without_times_are_lost_gpu_time(record: Record, gpu: FakeGpu) -> None:
    def work() -> None:
        gpu.launch("k", us=10, count=10)
        gpu.deliver()
        for _ in range(90):
            gpu.bad_times(started=False)

    recording = record(work)
    assert recording.report.status == "degraded"
    assert "90 of 100 records of GPU work carry no usable times" in recording.report.reason
    assert recording.counters["gpu_errors"] == 0
    assert_conserved(recording, gpu)


def test_one_record_without_times_among_many_is_only_said(record: Record, gpu: FakeGpu) -> None:
    def work() -> None:
        gpu.launch("k", us=10, count=200)
        gpu.deliver()
        gpu.bad_times(started=False)

    recording = record(work)
    assert recording.report.status == "ran"
    assert "1 of 201 records of GPU work carry no usable times" in " ".join(
        recording.profile.trust.notes
    )


def test_the_share_of_dropped_records_decides_the_status(record: Record, gpu: FakeGpu) -> None:
    if not gpu.vendor.counts_drops:
        return

    def lose(count: int) -> None:
        gpu.drop(count)
        gpu.launch("k", us=1, count=1000)
        gpu.deliver()

    recording = record(lambda: lose(10))
    assert recording.report.status == "ran"
    gpu.reset()
    recording = record(lambda: lose(11))
    assert recording.report.status == "degraded"
    assert "11 records of GPU work were dropped by the vendor's library" in recording.report.reason


def test_a_tool_that_takes_the_tail_is_noticed(record: Record, nvidia: FakeGpu) -> None:
    def work() -> None:
        nvidia.launch("k", us=10, count=600)
        nvidia.deliver()
        nvidia.take_over()
        nvidia.launch("k", us=10, count=500)
        nvidia.deliver()

    report = record(work).report
    assert report.status == "degraded"
    assert "500 of 1100 launches of GPU work left no record" in report.reason
    assert "another profiler (torch.profiler" in report.reason


def test_a_known_graph_hides_no_loss(record: Record, nvidia: FakeGpu) -> None:
    def work() -> None:
        nvidia.capture_begin()
        nvidia.launch("in graph", us=5)
        executable = nvidia.instantiate(nvidia.capture_end())
        nvidia.launch("k", us=10, count=49)
        nvidia.replay(executable)
        nvidia.deliver()
        nvidia.take_over()
        nvidia.launch("k", us=10, count=5000)
        nvidia.replay(executable)
        nvidia.deliver()

    report = record(work).report
    assert report.status == "degraded"
    assert "5001 of 5051 launches of GPU work left no record" in report.reason


def test_launches_that_a_capture_takes_leave_no_record_of_their_own(
    record: Record, gpu: FakeGpu
) -> None:
    def work() -> None:
        gpu.capture_begin()
        gpu.launch("in graph", us=5, count=50)
        executable = gpu.instantiate(gpu.capture_end())
        gpu.launch("k", us=1, count=10)
        for _ in range(3):
            gpu.replay(executable)
        gpu.deliver()

    recording = record(work)
    assert recording.report.status == "ran"
    assert recording.figure("answered") == recording.figure("launches") >= 13
    assert_conserved(recording, gpu)


def test_captured_launches_are_told_apart_without_callbacks_for_nodes(
    record: Record, nvidia: FakeGpu
) -> None:
    nvidia.fail("cuptiEnableCallback:3", 27)

    def work() -> None:
        nvidia.capture_begin()
        nvidia.launch("in graph", us=5, count=50)
        nvidia.replay(nvidia.instantiate(nvidia.capture_end()))
        nvidia.deliver()

    recording = record(work)
    assert recording.figure("launches") == recording.figure("answered") == 1
    assert "left no record" not in recording.report.reason


def test_a_launch_that_failed_leaves_no_record(record: Record, nvidia: FakeGpu) -> None:
    def work() -> None:
        nvidia.launch("k", us=1, count=10)
        nvidia.fail("cuLaunchKernel", 701)
        nvidia.launch("too large", us=1, count=10)
        nvidia.deliver()

    recording = record(work)
    assert recording.report.status == "ran"
    assert recording.counters["gpu_launches"] == 10
    assert_conserved(recording, nvidia)


def test_a_copy_of_no_bytes_leaves_no_record(record: Record, nvidia: FakeGpu) -> None:
    def work() -> None:
        nvidia.copy("HtoD", 0)
        nvidia.copy("HtoD", 16)
        nvidia.deliver()

    recording = record(work)
    assert recording.figure("launches") == 1
    assert_conserved(recording, nvidia)


def test_a_buffer_that_is_read_in_part_is_a_loss(record: Record, nvidia: FakeGpu) -> None:
    def work() -> None:
        nvidia.launch("k", us=1, count=100)
        nvidia.deliver()
        _native.gpu_flush("cupti")
        nvidia.launch("k", us=1, count=100)
        nvidia.deliver()
        nvidia.fail("cuptiActivityGetNextRecord", 21)

    report = record(work).report
    assert report.status == "degraded"
    assert "1 buffers of GPU records could not be read to their end" in report.reason
    assert "100 of 200 launches of GPU work left no record" in report.reason


def test_old_launches_without_a_record_are_noticed_while_the_program_runs(
    nvidia: FakeGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that is killed leaves its last snapshot."""
    monkeypatch.setenv("DEEPCONTEXT_GPU_BACKLOG_S", "0")
    files = nvidia.environment()
    collection = GpuCollection("nvidia")
    _native.begin(100_000)
    libraries = files["DEEPCONTEXT_LIBCUPTI"], files["DEEPCONTEXT_LIBCUDA"]
    collection.begin(Interface("cupti", *libraries), SessionOptions())
    nvidia.launch("k", us=1, count=100)
    nvidia.deliver()
    nvidia.take_over()
    nvidia.launch("taken", us=1, count=100)
    collection.flush()
    assert collection.outcome("").status == "ran"  # they may yet come
    collection.flush()
    outcome = collection.outcome("")
    collection.end()
    _native.end()
    assert outcome.status == "degraded"
    assert "100 of 200 launches of GPU work left no record" in outcome.reason


@pytest.mark.parametrize(("version", "faults"), [(28, 1), (130001, 2), (130101, 0), (130500, 0)])
def test_faults_of_a_release_with_graphs_are_named(
    record: Record, nvidia: FakeGpu, version: int, faults: int
) -> None:
    nvidia.version(version)

    def work() -> None:
        nvidia.capture_begin()
        nvidia.launch("k", us=1)
        nvidia.replay(nvidia.instantiate(nvidia.capture_end()))
        nvidia.deliver()

    notes = " ".join(record(work).profile.trust.notes)
    assert ("kineto issue 1165" in notes) == (faults > 0)
    assert ("parcagpu issue 23" in notes) == (faults > 1)


def test_a_release_without_graphs_in_the_program_has_no_faults(
    record: Record, nvidia: FakeGpu
) -> None:
    def work() -> None:
        nvidia.launch("k", us=1)
        nvidia.deliver()

    assert "issue" not in " ".join(record(work).profile.trust.notes)
