"""A parent began before its child, although process numbers are used again."""

from __future__ import annotations

from typing import Any

import pytest

from deepcontext.profiler.model.parents import parents_of
from deepcontext.profiler.model.run_info import RunInfo


def run(pid: int, parent: int, start: int, **facts: Any) -> RunInfo:
    return RunInfo(pid=pid, parent_pid=parent, start_unix_ns=start, hostname="a", **facts)


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        ([run(10, 1, 0), run(11, 10, 5)], [None, 0]),
        ([run(11, 10, 5), run(10, 1, 0)], [1, None]),
        # A later run has the number of the parent, or each has that of the other's parent.
        ([run(11, 10, 5), run(10, 1, 9)], [None, None]),
        ([run(11, 10, 5), run(10, 11, 9)], [None, 0]),
        ([run(10, 1, 0), run(11, 10, 5), run(10, 1, 9), run(12, 10, 12)], [None, 0, None, 2]),
        ([run(10, 0, 0), run(0, 0, 1), run(11, 0, 2)], [None, None, None]),
        ([run(10, 10, 0)], [None]),
    ],
)
def test_the_last_process_of_a_number_that_had_begun_is_the_parent(
    runs: list[RunInfo], expected: list[int | None]
) -> None:
    assert parents_of(runs) == expected


def test_a_process_of_another_host_is_no_parent() -> None:
    other = RunInfo(pid=10, start_unix_ns=0, hostname="b")
    assert parents_of([other, run(11, 10, 5)]) == [None, None]
