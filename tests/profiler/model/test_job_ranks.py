"""Which profiles of a run directory are ranks, and which of them belong to the last attempt."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from deepcontext.profiler.model.job_ranks import last_attempt, ranks_of
from deepcontext.profiler.model.run_info import RunInfo
from tests.synthetic import random_profile

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

EMPTY = random_profile(2, seed=0, depth=2)


def process(pid: int, rank: int | None = None, ranks: int = 2, **facts: Any) -> Profile:
    """Return the profile of one process; by default, one that began at its number."""
    source = {} if rank is None else {"rank": rank, "ranks": ranks, "rank_source": "RANK"}
    run = RunInfo(
        pid=pid, **{"hostname": "a", "start_unix_ns": pid, "parent_pid": 1, **source, **facts}
    )
    return dataclasses.replace(EMPTY, run=run)


def chosen(*profiles: Profile) -> list[int]:
    return list(last_attempt(ranks_of({profile.run.pid: profile for profile in profiles})))


def test_children_of_a_rank_and_the_launcher_are_no_ranks() -> None:
    launcher = process(10)
    ranks = [process(11, 0, parent_pid=10), process(12, 1, parent_pid=10)]
    worker = process(13, 1, parent_pid=12, process_name="ForkProcess-1")
    assert chosen(launcher, *ranks, worker) == [11, 12]


def test_a_rank_that_another_rank_started_is_a_rank() -> None:
    assert chosen(process(11, 0), process(12, 1, parent_pid=11)) == [11, 12]


def test_a_worker_whose_parent_has_no_profile_is_not_taken_for_the_rank() -> None:
    worker = process(15, 0, process_name="ForkServerProcess-1")
    assert chosen(process(11, 0), process(12, 1), worker) == [11, 12]


def test_the_process_that_the_framework_numbers_is_the_rank() -> None:
    wrapper = process(11, 0)
    program = process(20, 0, rank_source="torch.distributed")
    assert chosen(program, wrapper, process(12, 1)) == [20, 12]


def test_the_last_attempt_counts() -> None:
    first = [process(11, 0), process(12, 1)]
    second = [process(9, 0, attempt=1), process(8, 1, attempt=1)]  # process numbers are used again
    assert chosen(*first, *second) == [9, 8]


def test_hosts_count_their_attempts_alone() -> None:
    # Host b was not at fault: torch counts no attempt there, although its ranks began again.
    failed = [process(11, 0), process(12, 1, hostname="b")]
    again = [process(21, 0, attempt=1), process(22, 1, hostname="b")]
    assert chosen(*failed, *again) == [21, 22]


def test_a_rank_that_is_no_longer_in_the_job_is_left_out() -> None:
    first = [process(11, 0, 3), process(12, 1, 3), process(13, 2, 3, hostname="b")]
    second = [process(21, 0, attempt=1), process(22, 1, attempt=1)]
    assert chosen(*first, *second) == [21, 22]


def test_without_ranks_nothing_is_chosen() -> None:
    assert chosen(process(11), process(12)) == []
