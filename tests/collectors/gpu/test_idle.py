"""Time in which the device starved belongs to what the host did meanwhile."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kit import FakeGpu

    from tests.collectors.gpu.conftest import Recording
    from tests.collectors.gpu.test_scenarios import Record

MS = 1_000_000


def device(recording: Recording) -> dict[str, Any]:
    (only,) = json.loads(recording.profile.sections[f"gpu_{recording.vendor}"])["devices"]
    return only  # type: ignore[no-any-return]


def test_busy_and_idle_fill_the_span(record: Record, gpu: FakeGpu) -> None:
    def work() -> None:
        for i in range(20):
            gpu.launch("k", us=50, stream=i % 3)
            time.sleep(0.001)
        gpu.deliver(shuffle=9)

    recording = record(work)
    seen = device(recording)
    assert seen["busy_ns"] + seen["idle_ns"] == seen["span_ns"]
    assert seen["late_ns"] == 0
    attributed = recording.total("gpu_idle_ns") + recording.total("gpu_gap_ns")
    assert attributed == seen["idle_ns"]
    assert seen["idle_ns"] >= 19 * 0.9 * MS - 20 * 50_000
    assert sum(seen["stream_busy_ns"].values()) == 20 * 50_000


def test_idle_time_goes_to_where_the_host_was(record: Record, gpu: FakeGpu) -> None:
    def forward() -> None:
        gpu.launch("gemm", us=100)

    def update() -> None:
        gpu.launch("adam", us=100)

    def load_data() -> None:
        time.sleep(0.02)

    def step() -> None:
        load_data()
        forward()
        update()

    def work() -> None:
        for _ in range(4):
            step()
        gpu.deliver()

    recording = record(work)
    by_path = recording.by_path("gpu_idle_ns")
    # From update() to the next step's forward(): the host was in step(), on its way to forward().
    hottest = max(by_path, key=lambda path: by_path[path])
    assert hottest == ("work", "step")
    assert by_path[hottest] >= 3 * 19 * MS
    lines = {
        recording.profile.frame(node).line
        for node in recording.profile.metrics["gpu_idle_ns"].node.tolist()
        if recording.path(node) == hottest
    }
    assert len(lines) <= 2  # that of forward(), and of update() for the little before it


def test_idle_time_between_two_launches_of_one_line_is_its_own(
    record: Record, gpu: FakeGpu
) -> None:
    def work() -> None:
        for _ in range(3):
            time.sleep(0.01)
            gpu.launch("k", us=10)
        gpu.deliver()

    recording = record(work)
    (where,) = recording.by_path("gpu_idle_ns")
    assert where == ("work", "FakeGpu.launch")
    assert recording.total("gpu_idle_ns") >= 2 * 9 * MS


def test_work_that_queues_leaves_no_idle_time(record: Record, gpu: FakeGpu) -> None:
    def work() -> None:
        gpu.launch("k", us=2000, count=50)
        gpu.deliver()

    recording = record(work)
    assert recording.total("gpu_idle_ns") == 0
    assert device(recording)["idle_ns"] == 0
    assert recording.total("queue_delay_ns") > 49 * MS
