"""Batches of many tensors, which workers hand over one by one."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from deepcontext.analyzers import run_analyzers, with_worker_lines
from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.profiler.format.metric import SAMPLED_CPU_TIME_NS, SAMPLED_WAIT_TIME_NS
from deepcontext.profiler.model.metric_rows import MetricRows
from deepcontext.profiler.model.metric_table import MetricTable
from deepcontext.profiler.model.run_info import RunInfo
from deepcontext.profiler.model.trust import TrustReport

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile
    from tests.conftest import MakeProfile

SECOND_NS = 1_000_000_000
BATCHES = 10
ROOT = Frame(FrameKind.ROOT, "root")
THREAD = Frame(FrameKind.THREAD, "MainThread")
LOADER = "/lib/site-packages/torch/utils/data"
NEXT = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
TAKING = [
    Frame(
        FrameKind.PYTHON,
        "rebuild_storage_fd",
        "/lib/site-packages/torch/multiprocessing/reductions.py",
        538,
    ),
    Frame(FrameKind.PYTHON, "_rebuild_tensor", "/lib/site-packages/torch/_utils.py", 1),
    Frame(FrameKind.OPERATOR, "aten::set_"),
]
FRAMES = [
    ROOT,
    THREAD,
    Frame(FrameKind.PYTHON, "main", "train.py", 50),
    Frame(FrameKind.SCOPE, NEXT),
    Frame(FrameKind.PYTHON, "Queue.get", "/lib/multiprocessing/queues.py", 122),
    *TAKING,
    Frame(FrameKind.PYTHON, "_MultiProcessingDataLoaderIter.__init__", f"{LOADER}/dataloader.py"),
    Frame(FrameKind.OPERATOR, "aten::random_"),
    Frame(FrameKind.OPERATOR, "aten::mm"),
]
PARENTS = [-1, 0, 1, 2, 3, 4, 4, 6, 2, 8, 2]
REBUILDING, WAITING, SET, SEED, WORK = 5, 4, 7, 9, 10


def _sampled(profile: Profile, values: dict[int, float]) -> Profile:
    nodes = np.array(sorted(values), np.uint32)
    rows = MetricRows(
        SAMPLED_CPU_TIME_NS,
        node=nodes,
        count=np.full(len(nodes), 100, np.uint64),
        total=np.array([int(values[int(node)] * SECOND_NS) for node in nodes], np.int64),
    )
    return dataclasses.replace(
        profile, metrics=MetricTable({**profile.metrics, SAMPLED_CPU_TIME_NS.name: rows})
    )


def _loop(make_profile: MakeProfile, tensors: int, seconds: dict[int, float]) -> Profile:
    loop = make_profile(
        PARENTS,
        FRAMES,
        host_time_ns={3: 3 * SECOND_NS, SEED: 1000, WORK: SECOND_NS},
        call_samples_ns={
            3: [3 * SECOND_NS // (BATCHES + 1)] * (BATCHES + 1),
            SET: [1000] * (tensors * BATCHES),
            SEED: [1000],
        },
        run=RunInfo(pid=1, wall_ns=4 * SECOND_NS, cpu_count=2, cpu_user_ns=4 * SECOND_NS),
        trust=TrustReport(counters={"forked_children": 1}),
    )
    return _sampled(loop, seconds)


def test_many_tensors_handed_over_one_by_one_are_named(make_profile: MakeProfile) -> None:
    loop = _loop(make_profile, 64, {REBUILDING: 2.0, WAITING: 0.5})
    (found,) = run_analyzers(loop, only=["data_loading"])
    assert "80% of it while 64 tensors of each batch are handed over" in found.title
    assert "torch.cat" in found.advice
    assert found.evidence["hand_over_ns"] == int(0.8 * 3 * SECOND_NS)


def test_few_tensors_or_little_time_are_another_cause(make_profile: MakeProfile) -> None:
    for tensors, seconds in ((8, {REBUILDING: 2.0}), (64, {REBUILDING: 0.3, WAITING: 2.2})):
        (found,) = run_analyzers(_loop(make_profile, tensors, seconds), only=["data_loading"])
        assert "handed over" not in found.title


def test_the_line_that_joins_samples_is_named(make_profile: MakeProfile) -> None:
    loop = _loop(make_profile, 64, {REBUILDING: 2.0, WAITING: 0.5})
    found = run_analyzers(loop, only=["data_loading"])
    fetch = f"{LOADER}/_utils/fetch.py"
    frames = [
        ROOT,
        THREAD,
        Frame(FrameKind.PYTHON, "BaseProcess._bootstrap", "/lib/multiprocessing/process.py", 314),
        Frame(FrameKind.PYTHON, "_worker_loop", f"{LOADER}/_utils/worker.py", 300),
        Frame(FrameKind.PYTHON, "_MapDatasetFetcher.fetch", fetch, 52),
        Frame(FrameKind.PYTHON, "Boxes.__getitem__", "data.py", 20),
        Frame(FrameKind.PYTHON, "_MapDatasetFetcher.fetch", fetch, 54),
        Frame(FrameKind.PYTHON, "collate", "data.py", 30),
    ]
    run = RunInfo(pid=2, parent_pid=1, wall_ns=4 * SECOND_NS, cpu_count=2)
    worker = make_profile([-1, 0, 1, 2, 3, 4, 3, 6], frames, run=run)
    joins = _sampled(worker, {5: 0.2, 7: 0.1})
    (told,) = with_worker_lines(found, loop, lambda: [loop, joins])
    assert told.title.endswith("they are made at data.py:30 (collate)")
    assert "in the collate_fn at data.py:30 (collate)" in told.advice
    # Without a function of the user's that joins samples, the samples are what is handed over.
    (told,) = with_worker_lines(found, loop, lambda: [loop, _sampled(worker, {5: 0.2})])
    assert told.title.endswith("they are made at data.py:20 (Boxes.__getitem__)")
    assert "of a field in a collate_fn (torch.cat" in told.advice


def test_the_thread_that_pins_memory_takes_tensors_for_the_loop(make_profile: MakeProfile) -> None:
    frames = [
        *FRAMES[:5],
        *FRAMES[8:],
        Frame(FrameKind.THREAD, "Thread"),
        Frame(FrameKind.PYTHON, "_pin_memory_loop", f"{LOADER}/_utils/pin_memory.py", 40),
        *TAKING,
    ]
    loop = make_profile(
        [-1, 0, 1, 2, 3, 2, 5, 2, 0, 8, 9, 9, 11],
        frames,
        host_time_ns={3: 3 * SECOND_NS, 6: 1000, 7: SECOND_NS},
        call_samples_ns={
            3: [3 * SECOND_NS // (BATCHES + 1)] * (BATCHES + 1),
            6: [1000],
            12: [1000] * (64 * BATCHES),
        },
        run=RunInfo(pid=1, wall_ns=4 * SECOND_NS, cpu_count=2, cpu_user_ns=4 * SECOND_NS),
        trust=TrustReport(counters={"forked_children": 1}),
    )
    loop = _sampled(loop, {10: 1.0})
    waits = MetricRows(
        SAMPLED_WAIT_TIME_NS,
        node=np.array([4], np.uint32),
        count=np.array([100], np.uint64),
        total=np.array([2 * SECOND_NS], np.int64),
    )
    metrics = MetricTable({**loop.metrics, SAMPLED_WAIT_TIME_NS.name: waits})
    (found,) = run_analyzers(dataclasses.replace(loop, metrics=metrics), only=["data_loading"])
    assert "50% of it while 64 tensors of each batch are handed over" in found.title
