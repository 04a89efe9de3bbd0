"""Which operations are collectives, and how long each rank waits in them."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

from deepcontext.analyzers import run_analyzers
from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.profiler.format.metric import DEVICE_TIME_NS
from deepcontext.profiler.model.job.fold import merge
from deepcontext.profiler.model.metric_rows import MetricRows
from deepcontext.profiler.summaries import collectives

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile
    from tests.conftest import MakeProfile

SECOND = 1_000_000_000


def with_device_time(profile: Profile, times: dict[int, int]) -> Profile:
    rows = MetricRows(
        DEVICE_TIME_NS,
        np.array(list(times), np.uint32),
        np.ones(len(times), np.uint64),
        np.array(list(times.values()), np.int64),
    )
    return dataclasses.replace(profile, metrics={**profile.metrics, DEVICE_TIME_NS.name: rows})


def one_process(make_profile: MakeProfile, name: str, kind: FrameKind = FrameKind.HLO) -> Profile:
    """Return a process that spends a second in an operation of its line 7."""
    frames = [
        Frame(FrameKind.ROOT, ""),
        Frame(FrameKind.PYTHON, "step", "/home/me/train.py", 7),
        Frame(kind, name),
    ]
    return with_device_time(make_profile([0, 0, 1], frames), {2: SECOND})


@pytest.mark.parametrize(
    "name",
    [
        "psum_invariant.7",
        "psum",
        "all-reduce.1",
        "all-gather-start.2",
        "all-gather-done",
        "reduce-scatter-start.3",
        "ppermute.12",
    ],
)
def test_without_opcodes_a_collective_is_known_by_its_name(
    make_profile: MakeProfile, name: str
) -> None:
    profile = one_process(make_profile, name)
    assert collectives.collective_nodes(profile).tolist() == [False, False, True]
    assert not run_analyzers(profile, only=["hotspot"])


@pytest.mark.parametrize("name", ["reduce_sum.7", "gather.3", "fusion.psum", "all_gatherer"])
def test_other_operations_are_none(make_profile: MakeProfile, name: str) -> None:
    profile = one_process(make_profile, name)
    assert not collectives.collective_nodes(profile).any()
    assert [finding.id for finding in run_analyzers(profile, only=["hotspot"])] == ["hotspot"]


@pytest.mark.parametrize(
    "name", ["c10d::allreduce_", "_c10d_functional::all_reduce", "ncclDevKernel_AllReduce_Sum"]
)
def test_collectives_of_torch_and_nccl(make_profile: MakeProfile, name: str) -> None:
    profile = one_process(make_profile, name, FrameKind.OPERATOR)
    assert collectives.collective_nodes(profile).any()


@pytest.mark.parametrize(("opcode", "is_one"), [("all-reduce", True), ("fusion", False)])
def test_the_opcode_decides_where_it_is_known(
    make_profile: MakeProfile, opcode: str, *, is_one: bool
) -> None:
    """A scope of the user may be called as a primitive is."""
    operation = {
        "name": "psum.7",
        "opcode": opcode,
        "phase": "none",
        "members": [],
        "lines": [],
        "flops": 0,
        "bytes": 0,
    }
    program = {"uid": 1, "module": "jit_step", "lines": [], "operations": [operation]}
    content = {"version": 1, "programs": [program], "times": [[1, 0, 10, SECOND]]}
    profile = one_process(make_profile, "psum.7")
    profile = dataclasses.replace(profile, sections={"jax": json.dumps(content).encode()})
    assert collectives.collective_nodes(profile).any() == is_one


def test_a_rank_waits_for_what_it_exceeds_the_least(make_profile: MakeProfile) -> None:
    frames = [
        Frame(FrameKind.ROOT, ""),
        Frame(FrameKind.HLO, "psum.1"),
        Frame(FrameKind.HLO, "dot.1"),
    ]
    ranks = {}
    for rank, seconds in enumerate((3, 1, 0)):
        times = {1: seconds * SECOND, 2: 5 * SECOND}
        made = with_device_time(make_profile([0, 0, 0], frames), times)
        run = dataclasses.replace(made.run, rank=rank, ranks=3)
        ranks[str(rank)] = dataclasses.replace(made, run=run)
    first, second = collectives.by_rank(merge(ranks))
    assert (first.rank, second.rank, second.waiting_ns) == (0, 1, 0)
    assert first.total_ns == pytest.approx(3 * SECOND, rel=1e-3)
    assert first.waiting_ns == pytest.approx(2 * SECOND, rel=2e-3)


def test_one_process_cannot_tell_waiting_from_transfer(make_profile: MakeProfile) -> None:
    assert collectives.by_rank(one_process(make_profile, "psum.1")) == ()
