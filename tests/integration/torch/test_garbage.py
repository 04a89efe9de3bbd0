"""Collections of Python's garbage collector, at the line that called them."""

from __future__ import annotations

import gc
from typing import Any

import pytest

from deepcontext import _native

torch = pytest.importorskip("torch")

COLLECTIONS = 5


@pytest.mark.long
def test_collections_are_at_the_line_that_called_them(record: Any) -> None:
    crowd = [[number] for number in range(100_000)]

    def workload() -> None:
        torch.ones(1)
        for _ in range(COLLECTIONS):
            gc.collect()

    gc.disable()
    try:
        recording = record(workload)
    finally:
        gc.enable()
    rows = recording.profile.metrics["gc_time_ns"]
    found = {
        recording.text(int(node)): (int(count), int(total))
        for node, count, total in zip(rows.node, rows.count, rows.total, strict=True)
    }
    count, total = found["workload: gc.collect()"]
    assert count == COLLECTIONS
    assert total >= COLLECTIONS * 20_000
    assert len(crowd) == 100_000


def test_nothing_is_left_in_the_list_of_callbacks(record: Any) -> None:
    before = list(gc.callbacks)

    def workload() -> None:
        assert _native.note_gc in gc.callbacks

    record(workload)
    assert gc.callbacks == before


def test_a_program_may_clear_the_list(record: Any) -> None:
    before = list(gc.callbacks)
    record(gc.callbacks.clear)
    assert gc.callbacks == []
    gc.callbacks[:] = before
