"""Which profiles that are named one by one are of one job, and which are runs to compare."""

from __future__ import annotations

from typing import Any

import pytest

from deepcontext.profiler.model.related import are_related
from deepcontext.profiler.model.run_info import RunInfo


def run(pid: int, parent: int = 1, **facts: Any) -> RunInfo:
    """Return a process that ran for ten."""
    defaults = {"hostname": "a", "start_unix_ns": pid, "wall_ns": 10, "script": "train.py"}
    return RunInfo(pid=pid, parent_pid=parent, **{**defaults, **facts})


def rank(pid: int, number: int, **facts: Any) -> RunInfo:
    return run(pid, pid + 1, rank=number, ranks=2, **facts)


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        ([run(10), run(11, 10), run(12, 11)], True),
        ([run(11, 10), run(10)], True),
        ([run(11), run(12)], True),  # one launcher, at one time
        ([run(11), run(30)], False),  # one shell, one after the other
        ([run(11), run(12, 2)], False),
        ([run(11, 0), run(12, 0)], False),
        ([rank(10, 0), rank(50, 1, hostname="b")], True),
        ([rank(10, 0), rank(50, 0, hostname="b")], False),
        ([rank(10, 0), rank(50, 1, hostname="b", script="other.py")], False),
        ([run(10)], False),
        ([run(10), run(10)], False),  # one file twice
    ],
)
def test_processes_of_one_job(runs: list[RunInfo], *, expected: bool) -> None:
    assert are_related(runs) is expected
