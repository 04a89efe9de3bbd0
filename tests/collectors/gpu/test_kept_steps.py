"""Kept steps have the work of each stream, also where its records arrive after the step."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import deepcontext
from deepcontext import _native

if TYPE_CHECKING:
    from kit import FakeGpu

    from deepcontext.profiler.model.exemplars import Lane
    from tests.collectors.gpu.conftest import Recording
    from tests.collectors.gpu.test_scenarios import Record

STEPS = 6


def kernels(recording: Recording, lane: Lane) -> list[tuple[str, int]]:
    """Return name and duration of each span, in us."""
    names = [recording.profile.frame(node).name for node in lane.node.tolist()]
    return [
        (name, round(duration / 1000))
        for name, duration in zip(names, lane.duration_ns.tolist(), strict=True)
    ]


def work_of(gpu: FakeGpu, *, is_late: bool) -> None:
    for _ in range(STEPS):
        with deepcontext.scope("forward"):
            gpu.launch("gemm", us=300, stream=1)
            gpu.launch("adam", us=100, stream=2)
        time.sleep(0.003)
        _native.mark_step()
        if not is_late:
            gpu.deliver()
    gpu.deliver()


def check(recording: Recording) -> None:
    exemplars = recording.profile.exemplars
    assert [each.number for each in exemplars] == list(range(2, STEPS + 1))
    for exemplar in exemplars:
        thread, *streams = recording.profile.lanes(exemplar)
        assert [name for name, _ in kernels(recording, thread)] == ["forward"]
        assert [each.device for each in streams] == [0, 0]
        assert len({each.stream for each in streams}) == 2
        found = sorted(span for each in streams for span in kernels(recording, each))
        assert found == [("adam", 100), ("gemm", 300)]
        for each in streams:
            assert 0 <= each.begin_ns[0] < exemplar.duration_ns
            path = [frame.name for frame in recording.profile.path(int(each.node[0]))]
            assert "forward" in path


def test_records_of_each_step(record: Record, gpu: FakeGpu) -> None:
    check(record(lambda: work_of(gpu, is_late=False)))


def test_records_that_arrive_at_the_end(record: Record, gpu: FakeGpu) -> None:
    check(record(lambda: work_of(gpu, is_late=True)))
