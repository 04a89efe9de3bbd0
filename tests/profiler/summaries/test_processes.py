"""The processes of a job: roles, order, folding of alike ones, and which one a user names."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import pytest

from deepcontext.errors import UserError
from deepcontext.profiler.model.run_info import RunInfo
from deepcontext.profiler.summaries.processes import busiest, named, processes_of, shortened
from tests.synthetic import random_profile

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

EMPTY = random_profile(2, seed=0, depth=2)


def process(pid: int, parent: int = 1, **facts: Any) -> Profile:
    """Return the profile of one process that began at its number and ran one second."""
    defaults = {"hostname": "a", "start_unix_ns": pid, "exit_reason": "exit", "cpu_user_ns": 10**9}
    command = ("/usr/bin/python", "train.py")
    run = RunInfo(pid=pid, parent_pid=parent, **{"command": command, **defaults, **facts})
    return dataclasses.replace(EMPTY, run=run)


def rank(pid: int, number: int, **facts: Any) -> Profile:
    return process(pid, 10, rank=number, ranks=4, rank_source="RANK", **facts)


def told(*profiles: Profile) -> list[tuple[int, str, int]]:
    return [(p.profile.run.pid, p.role.value, p.depth) for p in processes_of(profiles)]


def test_children_are_below_their_parent() -> None:
    first, second = process(11, 10, process_name="Process-1"), process(12, 10)
    assert told(process(10), first, second, process(13, 11)) == [
        (10, "program", 0),
        (11, "child", 1),
        (13, "child", 2),
        (12, "child", 1),
    ]


def test_a_parent_that_began_later_is_another_process_with_the_same_number() -> None:
    assert told(process(10, 11), process(11)) == [(10, "program", 0), (11, "program", 0)]


@pytest.mark.parametrize(
    "words",
    [
        ("/env/bin/torchrun", "--nproc-per-node", "2", "train.py"),
        ("-m", "torch.distributed.run", "train.py"),
        ("/env/bin/accelerate", "launch", "train.py"),
    ],
)
def test_a_launcher_is_not_the_program(words: tuple[str, ...]) -> None:
    launcher = process(10, command=("/usr/bin/python", *words), cpu_user_ns=9 * 10**9)
    processes = processes_of([launcher, rank(11, 0), rank(12, 1, cpu_user_ns=2 * 10**9)])
    assert [each.role.value for each in processes] == ["launcher", "rank", "rank"]
    assert [each.rank for each in processes] == [None, 0, 1]
    assert busiest(processes).profile.run.pid == 12
    assert named(processes, "rank1").profile.run.pid == 12
    assert named(processes, "10").profile.run.pid == 10
    with pytest.raises(UserError, match="no process 'rank7': choose one of 10, rank0, rank1"):
        named(processes, "rank7")


def test_the_fork_server_is_not_shown_for_its_job() -> None:
    code = f"from multiprocessing.forkserver import main; main(11, 12, [], sys_path={['/x' * 99]})"
    server = process(11, 10, command=("/bin/python", "-c", code), cpu_user_ns=9 * 10**9)
    named_child = process(12, 11, command=server.run.command, process_name="Process-1")
    processes = processes_of([process(10, cpu_user_ns=5), server, named_child])
    assert [each.role.value for each in processes] == ["program", "fork server", "child"]
    assert processes[1].program == "python -c 'from multiprocessing.forkserver import main ...'"
    assert busiest(processes).profile.run.pid == 12


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("SpawnPoolWorker-3", "pool worker"),
        ("EngineCore_DP0", "engine"),
        ("VllmWorker-1", "worker"),
        ("ApiServer_0", "server"),
        ("Process-3", "child"),
    ],
)
def test_a_process_without_samples_has_the_role_of_its_name(name: str, role: str) -> None:
    assert told(process(10), process(11, 10, process_name=name))[1][1] == role


def test_alike_processes_are_folded_and_the_busiest_stays() -> None:
    ranks = [rank(20 + n, n) for n in range(4)]
    workers = [
        process(
            100 + n,
            20 + n % 4,
            rank=n % 4,
            ranks=4,
            process_name=f"ForkPoolWorker-{n}",
            cpu_user_ns=10**9 * (5 if n == 63 else 1),
            exit_reason="snapshot" if n == 40 else "exit",
        )
        for n in range(64)
    ]
    processes = processes_of([process(10), *ranks, *workers])
    shown, folded = shortened(processes, 12)
    assert len(shown) <= 13
    assert 163 in [each.profile.run.pid for each in shown]
    assert {each.role.value for each in shown} == {"program", "rank", "pool worker"}
    (more,) = folded
    assert (more.role.plural, more.count) == ("pool workers", 69 - len(shown))
    assert dict(more.ends) == {"running or killed": 1}
    assert sum(each.share for each in shown) + more.share == pytest.approx(1)


def test_few_processes_are_not_folded() -> None:
    processes = processes_of([process(10), *(process(11 + n, 10) for n in range(11))])
    assert shortened(processes, 12) == (processes, [])
