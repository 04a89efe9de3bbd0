"""The rank in a process group that is set and removed, and that nothing of the watch stays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from deepcontext.collectors.torch.process_group import ProcessGroups

if TYPE_CHECKING:
    from pathlib import Path

torch = pytest.importorskip("torch")
c10d = pytest.importorskip("torch.distributed.distributed_c10d")


class Group:
    def __init__(self, rank: int, size: int) -> None:
        self.numbers = rank, size

    def rank(self) -> int:
        return self.numbers[0]

    def size(self) -> int:
        return self.numbers[1]


def test_a_group_that_is_gone_is_remembered() -> None:
    before = vars(c10d._World)["default_pg"]
    watch = ProcessGroups(id)
    watch.start()
    try:
        assert watch.rank() is None
        c10d._world.default_pg = Group(0, 1)  # a program outside a job
        assert watch.rank() is None
        c10d._world.default_pg = Group(3, 4)
        assert c10d._world.default_pg.size() == 4
        c10d._world.default_pg = c10d.GroupMember.NON_GROUP_MEMBER
        c10d._world.default_pg = None
        rank = watch.rank()
    finally:
        c10d._world.default_pg = None
        watch.stop()
    assert rank is not None
    assert (rank.number, rank.of, rank.source) == (3, 4, "torch.distributed")
    assert vars(c10d._World)["default_pg"] is before


def test_groups_that_are_gone_are_counted(tmp_path: Path) -> None:
    watch = ProcessGroups(id)
    watch.start()
    try:
        assert watch.count() == 0
        store = f"file://{tmp_path / 'store'}"
        torch.distributed.init_process_group("gloo", init_method=store, rank=0, world_size=1)
        assert watch.count() == 1
        torch.distributed.new_group([0])
        torch.distributed.destroy_process_group()
        assert watch.count() == 2
    finally:
        watch.stop()


def test_a_default_group_is_told_when_it_is_set(tmp_path: Path) -> None:
    told: list[int] = []
    watch = ProcessGroups(id, on_default=lambda: told.append(watch.count()))
    watch.start()
    try:
        assert not told  # a program without a group pays nothing
        store = f"file://{tmp_path / 'store'}"
        torch.distributed.init_process_group("gloo", init_method=store, rank=0, world_size=1)
        assert told == [1]
        torch.distributed.destroy_process_group()
        assert told == [1]
    finally:
        watch.stop()


def test_groups_that_are_gone_are_known_by_name_and_members(tmp_path: Path) -> None:
    second: list[Any] = []
    watch = ProcessGroups(id, second.append)
    before = dict(vars(c10d._World))
    watch.start()
    try:
        store = f"file://{tmp_path / 'store'}"
        torch.distributed.init_process_group("gloo", init_method=store, rank=0, world_size=1)
        assert not second
        default = torch.distributed.group.WORLD
        other = torch.distributed.new_group([0])
        torch.distributed.new_group([0])
        assert second == [default]  # before the second is used, and once
        addresses = id(default), id(other)
        assert watch.backends(default) == {"gloo"}
        assert watch.backends(object()) == frozenset()
        torch.distributed.destroy_process_group()
    finally:
        watch.stop()
    known = watch.by_address()
    assert [known[address].members for address in addresses] == [(0,), (0,)]
    assert known[addresses[0]].name != known[addresses[1]].name
    assert watch.default() == known[addresses[0]]
    assert dict(vars(c10d._World)) == before
