"""The rank in a process group that is set and removed, and that nothing of the watch stays."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from deepcontext.collectors.torch.process_group import DefaultGroup

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
    watch = DefaultGroup()
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
    watch = DefaultGroup()
    watch.start()
    try:
        assert watch.groups() == 0
        store = f"file://{tmp_path / 'store'}"
        torch.distributed.init_process_group("gloo", init_method=store, rank=0, world_size=1)
        assert watch.groups() == 1
        torch.distributed.new_group([0])
        torch.distributed.destroy_process_group()
        assert watch.groups() == 2
    finally:
        watch.stop()
