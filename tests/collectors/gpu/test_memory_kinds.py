"""Pinned, pageable and managed memory: copies are counted once, and named by what makes them slow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.collectors.gpu.test_scenarios import assert_conserved

if TYPE_CHECKING:
    from kit import FakeGpu

    from tests.collectors.gpu.test_scenarios import Record

MIB = 1 << 20


@pytest.mark.parametrize("memory", ["pinned", "pageable", "managed"])
def test_copies_of_each_kind_of_memory_are_counted_once(
    record: Record, gpu: FakeGpu, memory: str
) -> None:
    """AMD's run time copies pageable memory in parts, each with a record: bytes and time are the copy's."""
    gpu.memory(memory)

    def upload() -> None:
        gpu.copy("HtoD", 10 * MIB, us=100)

    def download() -> None:
        gpu.copy("DtoH", 6 * MIB, us=60, blocking=True)

    def work() -> None:
        upload()
        download()
        gpu.copy("DtoD", MIB, us=3)
        gpu.deliver(shuffle=4)

    recording = record(work)
    is_named = gpu.vendor.interface == "cupti" and memory != "pinned"
    suffix = f" ({memory})" if is_named else ""
    assert recording.by_path("copy_bytes") == {
        ("work", "upload", "FakeGpu.copy", f"Memcpy HtoD{suffix}"): 10 * MIB,
        ("work", "download", "FakeGpu.copy", f"Memcpy DtoH{suffix}"): 6 * MIB,
        ("work", "FakeGpu.copy", "Memcpy DtoD"): MIB,
    }
    assert sum(recording.by_path("gpu_time_ns").values()) == pytest.approx(163_000, abs=5)
    assert recording.figure("launches") >= recording.figure("answered") >= 3
    assert recording.report.status == "ran", recording.report.reason
    assert_conserved(recording, gpu)


def test_moving_pages_of_managed_memory_is_no_launch(record: Record, gpu: FakeGpu) -> None:
    """No record comes that the collector could wait for; the kernel that uses the pages has its time."""

    def work() -> None:
        gpu.launch("k", us=3, count=2)
        for _ in range(50):
            gpu.prefetch(2 * MIB)
        gpu.launch("faults", us=30)
        gpu.deliver()

    recording = record(work)
    assert recording.counters["gpu_launches"] == 3
    assert recording.total("gpu_time_ns") == 36_000
    assert recording.report.status == "ran", recording.report.reason
    assert_conserved(recording, gpu)
