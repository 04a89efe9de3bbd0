"""Whatever a vendor's library does with its records, none is lost without being counted.

The same scenarios run over every vendor's fake.
"""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING

import pytest

from deepcontext import _native

if TYPE_CHECKING:
    from collections.abc import Callable

    from kit import FakeGpu

    from tests.collectors.gpu.conftest import Recording

    Record = Callable[..., Recording]

UNKNOWN = "GPU work of unknown origin"


def assert_conserved(recording: Recording, gpu: FakeGpu) -> None:
    """What the device did is attributed, or counted as unmatched or dropped; and in the tree once."""
    counters = recording.counters
    came = counters["gpu_records_matched"] + counters["gpu_records_unmatched"]
    assert counters["gpu_records_received"] == came
    assert gpu.count("launched") == came + counters["gpu_records_dropped"]
    assert recording.total("launch_count") == came
    assert recording.count("gpu_time_ns") == came


def test_kernel_time_goes_to_the_launching_line(record: Record, gpu: FakeGpu) -> None:
    def inner() -> None:
        gpu.launch("gemm", us=30)

    def work() -> None:
        inner()
        inner()
        gpu.launch("relu", us=5)
        gpu.deliver()

    recording = record(work)
    assert recording.by_path("gpu_time_ns") == {
        ("work", "inner", "FakeGpu.launch", "gemm"): 60_000,
        ("work", "FakeGpu.launch", "relu"): 5_000,
    }
    assert recording.report.status == "ran"
    assert_conserved(recording, gpu)


def test_kernels_are_told_apart_from_copies_and_memsets(record: Record, gpu: FakeGpu) -> None:
    def work() -> None:
        gpu.copy("HtoD", 4096, us=3)
        gpu.copy("DtoH", 512, us=2)
        gpu.memset(100, us=1)
        gpu.deliver()

    recording = record(work)
    sizes = {path[-1]: size for path, size in recording.by_path("copy_bytes").items()}
    assert sizes["Memcpy HtoD"] == 4096
    assert sizes["Memcpy DtoH"] == 512
    assert sum(recording.by_path("gpu_time_ns").values()) == 6_000
    assert_conserved(recording, gpu)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_shuffled_records_find_their_launch(record: Record, gpu: FakeGpu, seed: int) -> None:
    def layer(name: str) -> None:
        gpu.launch(name, us=1, stream=hash(name) % 3)

    def work() -> None:
        for i in range(300):
            layer(f"k{i % 7}")
        gpu.deliver(shuffle=seed)

    recording = record(work)
    assert recording.kernels() == {
        ("work", "layer", "FakeGpu.launch", f"k{i}"): 43 if i < 6 else 42 for i in range(7)
    }
    assert_conserved(recording, gpu)


def test_late_records_find_their_launch(record: Record, gpu: FakeGpu) -> None:
    def work() -> None:
        gpu.launch("early", us=1)
        gpu.launch("late", us=1, count=5000)
        gpu.deliver(shuffle=1)

    recording = record(work)
    assert recording.counters["gpu_records_unmatched"] == 0
    assert_conserved(recording, gpu)


def test_tiny_buffers(record: Record, gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEEPCONTEXT_GPU_BUFFER_BYTES", "1024")
    gpu.buffer_records(4)

    def work() -> None:
        gpu.launch("k", us=1, count=1000)
        gpu.copy("HtoD", 1, us=1)
        gpu.deliver(shuffle=4)

    recording = record(work)
    assert recording.figure("buffers") >= 250
    assert recording.counters["gpu_records_matched"] == 1001
    assert_conserved(recording, gpu)


def test_dropped_records_are_counted_and_said(record: Record, gpu: FakeGpu) -> None:
    def work() -> None:
        gpu.drop(30)
        gpu.launch("k", us=1, count=100)
        gpu.deliver()

    recording = record(work)
    if not gpu.vendor.counts_drops:
        assert recording.counters["gpu_records_matched"] == 70
        return
    assert recording.counters["gpu_records_dropped"] == 30
    assert recording.counters["gpu_records_matched"] == 70
    assert "30 records of GPU work were dropped" in " ".join(recording.profile.trust.notes)
    assert_conserved(recording, gpu)


def test_unknown_records_are_counted_and_skipped(record: Record, gpu: FakeGpu) -> None:
    def work() -> None:
        gpu.launch("k", us=1, count=10)
        gpu.unknown_records(5)
        gpu.deliver()
        gpu.unknown_records(3)

    recording = record(work)
    assert recording.counters["gpu_records_unknown"] == 8
    assert recording.counters["gpu_records_matched"] == 10
    assert_conserved(recording, gpu)


def test_work_launched_before_the_session_has_no_origin(record: Record, gpu: FakeGpu) -> None:
    record(lambda: None)  # AMD's tools see launches from their first session on
    gpu.launch("before", us=2)

    def work() -> None:
        gpu.launch("inside", us=3)
        gpu.next_correlation(500)
        gpu.deliver()

    gpu.next_correlation(400)
    recording = record(work)
    assert recording.counters["gpu_records_unmatched"] == 1
    times = recording.by_path("gpu_time_ns")
    assert sum(times.values()) == 5_000
    unknown = [path for path in times if "before" in path]
    assert len(unknown) == 1
    assert_conserved(recording, gpu)


def test_a_record_that_ends_before_it_begins_counts_without_time(
    record: Record, gpu: FakeGpu
) -> None:
    def work() -> None:
        gpu.launch("k", us=1)
        gpu.deliver()
        gpu.bad_times()

    recording = record(work)
    assert recording.figure("bad_times") == 1
    assert recording.total("gpu_time_ns") == 1_000
    assert_conserved(recording, gpu)


def test_a_record_without_times_is_no_idle_time(record: Record, gpu: FakeGpu) -> None:
    """CUPTI writes 0 where it could not take the times, or was made to hand a record over."""

    def work() -> None:
        gpu.bad_times(started=False)
        gpu.launch("k", us=1)
        gpu.deliver()

    recording = record(work)
    assert recording.figure("bad_times") == 1
    assert recording.total("gpu_time_ns") == 1_000
    assert recording.total("gpu_idle_ns") == 0
    assert_conserved(recording, gpu)


def test_correlation_ids_wrap(record: Record, gpu: FakeGpu) -> None:
    def first() -> None:
        gpu.launch("a", us=1, count=40)

    def second() -> None:
        gpu.launch("b", us=1, count=40)

    def work() -> None:
        gpu.next_correlation(2**32 - 40)
        first()
        second()
        gpu.deliver(shuffle=5)

    recording = record(work)
    assert recording.kernels() == {
        ("work", "first", "FakeGpu.launch", "a"): 40,
        ("work", "second", "FakeGpu.launch", "b"): 40,
    }
    assert_conserved(recording, gpu)


def test_several_threads_launch_and_several_deliver(record: Record, gpu: FakeGpu) -> None:
    threads, launches = 4, 20_000
    is_over = threading.Event()

    def launch(index: int) -> None:
        half = launches // 2
        gpu.launch(f"even{index}", us=1, stream=index, count=half)
        gpu.launch(f"odd{index}", us=1, stream=index, count=half)

    def deliver() -> None:
        seed = 1
        while not is_over.is_set():
            gpu.deliver(shuffle=seed, threads=3)
            _native.gpu_flush(gpu.vendor.interface)
            seed += 1

    def work() -> None:
        workers = [threading.Thread(target=launch, args=(i,)) for i in range(threads)]
        deliverer = threading.Thread(target=deliver)
        for thread in (*workers, deliverer):
            thread.start()
        for thread in workers:
            thread.join()
        is_over.set()
        deliverer.join()
        gpu.deliver()

    recording = record(work)
    assert recording.counters["gpu_launches"] == 80_000
    assert recording.counters["gpu_records_matched"] == 80_000
    by_kernel: dict[str, int] = {}
    for path, count in recording.kernels().items():
        assert "launch" in path
        by_kernel[path[-1]] = by_kernel.get(path[-1], 0) + count
    assert by_kernel == {
        f"{name}{i}": launches // 2 for i in range(threads) for name in ("even", "odd")
    }
    assert_conserved(recording, gpu)


def test_waiting_for_the_device_is_time_of_the_host(record: Record, gpu: FakeGpu) -> None:
    def work() -> None:
        gpu.launch("k", us=10)
        gpu.synchronize(us=3000)
        gpu.copy("DtoH", 64, us=2000, blocking=True)
        gpu.deliver()

    recording = record(work)
    waits = recording.by_path("sync_wait_ns")
    assert recording.count("sync_wait_ns") == 2
    assert 3_000_000 <= max(waits.values()) < 500_000_000
    assert 2_000_000 <= min(waits.values()) < 500_000_000


def test_devices_are_told_apart(record: Record, gpu: FakeGpu) -> None:
    def work() -> None:
        for device in range(3):
            gpu.use_device(device)
            gpu.launch("k", us=10 * (device + 1))
        gpu.use_device(0)
        gpu.deliver(shuffle=2)

    recording = record(work)
    section = json.loads(recording.profile.sections[f"gpu_{recording.vendor}"])
    assert section["device_vendor"] == recording.vendor
    busy = {device["device"]: device["busy_ns"] for device in section["devices"]}
    assert busy == {0: 10_000, 1: 20_000, 2: 30_000}
    assert_conserved(recording, gpu)


def test_times_of_api_calls_come_on_request(record: Record, gpu: FakeGpu) -> None:
    def work() -> None:
        gpu.launch("k", us=1, count=5)
        gpu.copy("DtoH", 64, us=1, blocking=True)
        gpu.synchronize(us=2000)
        gpu.deliver()

    assert record(work).total("gpu_api_ns") == 0
    gpu.reset()
    recording = record(work, gpu_calls=True)
    calls = {path[-1]: n for path, n in recording.by_path("gpu_api_ns", count=True).items()}
    assert sorted(calls.values()) == [1, 1, 5]
    launch = next(name for name, count in calls.items() if count == 5)
    assert launch in {"cuLaunchKernel", "hipLaunchKernel"}
    assert recording.total("gpu_api_ns") > 2_000_000
    assert recording.count("sync_wait_ns") == 2
    assert_conserved(recording, gpu)


def test_a_launch_that_left_no_record_is_an_error(record: Record, gpu: FakeGpu) -> None:
    def work() -> None:
        gpu.launch("k", us=10, count=3)  # and nothing is ever delivered

    recording = record(work)
    assert recording.counters["gpu_errors"] == 1
    assert recording.report.status == "degraded"
    assert "not one record arrived" in recording.report.reason
    assert recording.profile.trust.notes[0].startswith("error: ")
    assert "3 times" in recording.profile.trust.notes[0]
