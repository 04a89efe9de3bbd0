"""Several contexts of one device (green contexts), and partitions of a GPU (MIG)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from deepcontext import _native
from tests.collectors.gpu.test_flushing import wait_for
from tests.collectors.gpu.test_scenarios import assert_conserved

if TYPE_CHECKING:
    import pytest
    from kit import FakeGpu

    from tests.collectors.gpu.test_scenarios import Record


def test_green_contexts_share_a_device_and_are_waited_for(record: Record, nvidia: FakeGpu) -> None:
    """Each context numbers its own streams, and its work overlaps that of the others."""

    def work() -> None:
        for context, us in enumerate((10, 20, 40)):
            nvidia.use_context(context)
            nvidia.launch(f"k{context}", us=us, count=5, stream=7)
        nvidia.use_context(0)
        nvidia.deliver(shuffle=3)

    recording = record(work)
    assert recording.kernels() == {("work", "FakeGpu.launch", f"k{i}"): 5 for i in range(3)}
    (device,) = json.loads(recording.profile.sections["gpu_nvidia"])["devices"]
    assert device["device"] == 0
    assert device["stream_busy_ns"] == {"1:7": 50_000, "2:7": 100_000, "3:7": 200_000}
    assert 200_000 <= device["busy_ns"] <= 350_000
    assert nvidia.waited_contexts() == 3
    assert recording.report.status == "ran", recording.report.reason
    assert_conserved(recording, nvidia)


def test_what_a_partition_refuses_is_named(
    record: Record, nvidia: FakeGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEEPCONTEXT_GPU_STALLS", "may-hang")
    nvidia.fail("cuptiPCSamplingEnable", 43)

    def is_refused() -> bool:
        _native.gpu_flush("cupti")
        return bool(_native.gpu_lacking("cupti"))

    def work() -> None:
        nvidia.launch("k", us=5, count=20)
        nvidia.deliver()
        wait_for(is_refused)

    recording = record(work, stalls=True)
    reason = recording.report.reason
    assert "CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED (43)" in reason
    assert "give the program a whole GPU" in reason
    assert recording.counters["gpu_records_matched"] == 20
    assert_conserved(recording, nvidia)
