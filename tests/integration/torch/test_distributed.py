"""torch.distributed with gloo: collectives that end on threads that Python does not know."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from typing import Any

import pytest

from deepcontext.profiler.format import run_directory
from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.summaries import ranks as rank_summary

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.skipif(
    not torch.distributed.is_available(), reason="this torch has no torch.distributed"
)

# Runs alone (world size 1) or as `program.py world`, which starts its ranks by fork.
PROGRAM = """
    import sys, os
    import torch, deepcontext
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    def work(rank, world, store):
        deepcontext.start(f"rank{rank}.dcprof")
        dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=world)
        torch.manual_seed(rank)
        net = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh()))
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(4):
            loss = net(torch.randn(4, 8)).sum()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        handle = dist.all_reduce(torch.ones(3), async_op=True)
        handle.wait()
        total = sum(p.sum().item() for p in net.parameters())
        os.write(1, f"{rank} {total}\\n".encode())  # whole lines, whatever the other rank does
        dist.destroy_process_group()
        deepcontext.stop()

    if __name__ == "__main__":
        world = int(sys.argv[1])
        store = os.path.abspath("store")
        if world == 1:
            work(0, 1, store)
        else:
            torch.multiprocessing.start_processes(work, (world, store), world, start_method="fork")
"""


def check_rank(recording: Any) -> None:
    assert recording.counters["backward_links_missed"] == 0
    ddp = "DistributedDataParallel.forward"
    assert recording.calls(ddp) == 4
    (path,) = recording.paths("aten::addmm")
    assert "work: loss = net(torch.randn(4, 8)).sum()" in path
    assert "DistributedDataParallel" in path
    assert f"<{ddp}>" in path
    assert "Linear 'module.0'" in path
    (backward,) = recording.paths("AddmmBackward0")
    assert backward[:-1] == path
    # One of the program's own line, one of the gradients, where the last of a bucket is ready.
    (own,) = (p for p in recording.paths("c10d::allreduce_") if "all_reduce" in p)
    assert "work: handle = dist.all_reduce(torch.ones(3), async_op=True)" in own
    (gradients,) = (p for p in recording.paths("c10d::allreduce_") if p != own)
    assert gradients[-2:] == ["torch::autograd::AccumulateGrad", "c10d::allreduce_"]


def check_asynchronous_scopes(recording: Any) -> None:
    """They have durations and no exclusive time: they run beside the program, not inside it."""
    scopes = recording.nodes(FrameKind.SCOPE, "gloo:all_reduce")
    assert sum(recording.count(node) for node in scopes) == 5  # 4 backward, 1 of the program
    exclusive = recording.profile.exclusive("host_time_ns")
    assert all(exclusive[node] == 0 for node in scopes)
    rows = recording.profile.metrics["call_duration_ns"]
    totals = dict(zip(rows.node.tolist(), rows.total.tolist(), strict=True))
    assert all(totals[node] > 0 for node in scopes)


@pytest.mark.long
def test_a_world_of_one(script: Any) -> None:
    script.run(PROGRAM, "1", MASTER_ADDR="127.0.0.1")
    recording = script.recording("rank0.dcprof")
    check_rank(recording)
    check_asynchronous_scopes(recording)


@pytest.mark.long
def test_two_ranks(script: Any) -> None:
    printed = script.run(PROGRAM, "2", MASTER_ADDR="127.0.0.1", OMP_NUM_THREADS="1")
    values = {line.split()[1] for line in printed.splitlines()}
    assert len(values) == 1  # the ranks stayed in step
    for rank in range(2):
        recording = script.recording(f"rank{rank}.dcprof")
        check_rank(recording)
        check_asynchronous_scopes(recording)
        # The launcher said nothing, and the group is gone when the profile is written.
        run = recording.profile.run
        assert (run.rank, run.ranks, run.rank_source) == (rank, 2, "torch.distributed")
    assert sorted(p for p in os.listdir(script.folder) if p.endswith(".dcprof")) == [  # noqa: PTH208
        "rank0.dcprof",
        "rank1.dcprof",
    ]


UNEVEN = """
    import time
    import torch
    import torch.distributed as dist

    def load():
        time.sleep(1.0 if dist.get_rank() == 1 else 0.0)

    dist.init_process_group("gloo")
    load()
    values = torch.full((4,), float(dist.get_rank()))
    dist.all_reduce(values)
    assert values[0].item() == 1
    dist.destroy_process_group()
"""


@pytest.mark.long
def test_every_rank_that_torchrun_starts_has_a_profile_and_merged_they_show_who_waits(
    script: Any,
) -> None:
    script.path.write_text(textwrap.dedent(UNEVEN), encoding="utf-8")
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    profile = ["-m", "deepcontext", "profile", "-q", script.path.name]
    merge = ["-m", "deepcontext", "merge", "-o", "job.dcprof"]
    for words in (
        [*launcher, *profile],
        [*merge, "program.dcrun"],
    ):
        subprocess.run(
            [sys.executable, *words],
            cwd=script.folder,
            capture_output=True,
            check=True,
            timeout=120,
        )
    job = script.recording("job.dcprof").profile
    files = run_directory.profiles(script.folder / "program.dcrun")
    recordings = [script.recording(str(path)) for path in files]
    ranks = [recording.profile for recording in recordings]
    assert {(each.run.rank, each.run.ranks) for each in ranks} == {(0, 2), (1, 2)}
    assert [recording.calls("c10d::allreduce_") for recording in recordings] == [1, 1]
    for metric in ("host_time_ns", "elapsed_time_ns", "alloc_bytes"):
        total = sum(int(profile.inclusive(metric)[0]) for profile in ranks)
        assert job.inclusive(metric)[0] == total > 0
    lines = {line.line: line.by_rank for line in rank_summary.uneven_lines(job, 99)}
    text = textwrap.dedent(UNEVEN).splitlines()
    (sleeping,) = (number for number, line in enumerate(text, 1) if "sleep" in line)
    assert lines[sleeping][1] > 900_000_000 > 10 * lines[sleeping][0]
