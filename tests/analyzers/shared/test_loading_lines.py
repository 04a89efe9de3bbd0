"""The line that makes batches, in the loop's process and in the profile of a worker."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import pytest

from deepcontext.analyzers import run_analyzers, with_worker_lines
from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.profiler.format.metric import (
    SAMPLED_CPU_TIME_NS,
    SAMPLED_READY_TIME_NS,
    SAMPLED_WAIT_TIME_NS,
)
from deepcontext.profiler.model.metric_rows import MetricRows
from deepcontext.profiler.model.metric_table import MetricTable
from deepcontext.profiler.model.run_info import RunInfo
from deepcontext.profiler.model.trust import TrustReport

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile
    from tests.conftest import MakeProfile

ROOT = Frame(FrameKind.ROOT, "root")
THREAD = Frame(FrameKind.THREAD, "MainThread")
LOADER = "/lib/site-packages/torch/utils/data"
WORKER = [
    ROOT,
    THREAD,
    Frame(FrameKind.PYTHON, "main", "train.py", 50),
    Frame(FrameKind.PYTHON, "BaseProcess._bootstrap", "/lib/multiprocessing/process.py", 314),
    Frame(FrameKind.PYTHON, "_worker_loop", f"{LOADER}/_utils/worker.py", 300),
    Frame(FrameKind.PYTHON, "_MapDatasetFetcher.fetch", f"{LOADER}/_utils/fetch.py", 52),
    Frame(FrameKind.PYTHON, "Texts.__getitem__", "data.py", 20),
    Frame(FrameKind.PYTHON, "tokenize", "data.py", 7),
]
NEXT = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
SECOND_NS = 1_000_000_000


def _sampled(profile: Profile, values: dict[int, int]) -> Profile:
    nodes = np.array(sorted(values), np.uint32)
    rows = MetricRows(
        SAMPLED_CPU_TIME_NS,
        node=nodes,
        count=np.full(len(nodes), 100, np.uint64),
        total=np.array([values[int(node)] for node in nodes], np.int64),
    )
    return dataclasses.replace(
        profile, metrics=MetricTable({**profile.metrics, SAMPLED_CPU_TIME_NS.name: rows})
    )


def _worker(make_profile: MakeProfile, seconds: dict[int, float], *, parent: int = 1) -> Profile:
    run = RunInfo(pid=parent + 1, parent_pid=parent, wall_ns=4 * SECOND_NS, cpu_count=2)
    profile = make_profile([-1, 0, 1, 2, 3, 4, 5, 6], WORKER, run=run)
    return _sampled(profile, {node: int(value * SECOND_NS) for node, value in seconds.items()})


def test_a_busy_worker_names_the_line_that_makes_its_batches(make_profile: MakeProfile) -> None:
    worker = _worker(make_profile, {4: 0.1, 6: 0.4, 7: 2.0})
    (finding,) = run_analyzers(worker, only=["data_loading"])
    assert "spends 83% of the time of making batches at data.py:7 (tokenize)" in finding.title
    assert worker.frame(finding.nodes[0]).name == "tokenize"
    assert "make data.py:7 (tokenize) cheaper" in finding.advice


def test_lines_of_one_function_are_one_cause(make_profile: MakeProfile) -> None:
    frames = [*WORKER, Frame(FrameKind.PYTHON, "tokenize", "data.py", 8)]
    frames.append(Frame(FrameKind.PYTHON, "tokenize.<locals>.<listcomp>", "data.py", 9))
    run = RunInfo(pid=2, parent_pid=1, wall_ns=4 * SECOND_NS, cpu_count=2)
    worker = make_profile([-1, 0, 1, 2, 3, 4, 5, 6, 6, 8], frames, run=run)
    values = {6: 0.4, 7: 0.9, 8: 0.8, 9: 0.1}
    worker = _sampled(worker, {node: int(value * SECOND_NS) for node, value in values.items()})
    (finding,) = run_analyzers(worker, only=["data_loading"])
    assert "spends 82% of the time of making batches" in finding.title
    assert finding.title.endswith("at data.py:7 (tokenize) and data.py:8")


def test_a_function_whose_time_many_lines_share_is_named_instead_of_its_first_line(
    make_profile: MakeProfile,
) -> None:
    made = f"{LOADER}/dataloader.py"
    frames = [
        ROOT,
        THREAD,
        Frame(FrameKind.PYTHON, "main", "train.py", 50),
        Frame(FrameKind.SCOPE, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"),
        Frame(FrameKind.PYTHON, "_SingleProcessDataLoaderIter._next_data", made, 1),
        *(Frame(FrameKind.PYTHON, "Texts.__getitem__", "data.py", line) for line in range(20, 25)),
    ]
    run = RunInfo(pid=1, wall_ns=4 * SECOND_NS, cpu_count=2, cpu_user_ns=4 * SECOND_NS)
    host = {3: 3 * SECOND_NS}
    loop = make_profile([-1, 0, 1, 2, 3, *[4] * 5], frames, host_time_ns=host, run=run)
    values = {5: 1.2, 6: 0.5, 7: 0.5, 8: 0.4, 9: 0.4}
    loop = _sampled(loop, {node: int(value * SECOND_NS) for node, value in values.items()})
    (finding,) = run_analyzers(loop, only=["data_loading"])
    assert finding.title.endswith("100% of it in Texts.__getitem__, most at data.py:20")


def test_a_worker_that_mostly_idles_is_no_finding(make_profile: MakeProfile) -> None:
    assert not run_analyzers(_worker(make_profile, {4: 2.0, 7: 0.5}), only=["data_loading"])


def test_a_line_of_the_parent_above_a_forked_worker_is_not_named(make_profile: MakeProfile) -> None:
    assert not run_analyzers(_worker(make_profile, {5: 2.0}), only=["data_loading"])


def _loop(make_profile: MakeProfile, children: int = 1) -> Profile:
    """Return the profile of a loop over one loader with workers, which shuffles."""
    made = f"{LOADER}/dataloader.py"
    frames = [
        ROOT,
        THREAD,
        Frame(FrameKind.PYTHON, "main", "train.py", 50),
        Frame(FrameKind.SCOPE, NEXT),
        Frame(FrameKind.PYTHON, "_MultiProcessingDataLoaderIter.__init__", made, 1),
        Frame(FrameKind.OPERATOR, "aten::random_"),
        Frame(FrameKind.PYTHON, "_BaseDataLoaderIter._next_index", made, 2),
        Frame(FrameKind.OPERATOR, "aten::random_"),
    ]
    loop = make_profile(
        [-1, 0, 1, 2, 2, 4, 4, 6],
        frames,
        host_time_ns={3: 3 * SECOND_NS, 5: 1000, 7: 1000},
        call_samples_ns={3: [SECOND_NS] * 3, 5: [1000], 7: [1000]},
        run=RunInfo(pid=1, wall_ns=4 * SECOND_NS, cpu_count=2, cpu_user_ns=4 * SECOND_NS),
        trust=TrustReport(counters={"forked_children": children}),
    )
    return _sampled(loop, {2: 2000})


def test_the_seed_of_a_sampler_that_shuffles_is_no_iterator(make_profile: MakeProfile) -> None:
    for children in (1, 2):
        (found,) = run_analyzers(_loop(make_profile, children), only=["data_loading"])
        assert found.evidence["worker_count"] == children


def test_a_worker_kept_from_a_processor_does_not_sleep(make_profile: MakeProfile) -> None:
    loop = _loop(make_profile)
    found = run_analyzers(loop, only=["data_loading"])
    times = {
        SAMPLED_READY_TIME_NS: {6: 0.3, 7: 0.9},
        SAMPLED_WAIT_TIME_NS: {6: 0.3, 7: 0.9},
        SAMPLED_CPU_TIME_NS: {6: 0.2, 7: 0.6},
    }
    metrics = {
        each.name: dataclasses.replace(
            _worker(make_profile, seconds).metrics[SAMPLED_CPU_TIME_NS.name], descriptor=each
        )
        for each, seconds in times.items()
    }
    crowded = dataclasses.replace(_worker(make_profile, {}), metrics=MetricTable(metrics))
    (waits,) = with_worker_lines(found, loop, lambda: [loop, crowded])
    assert "its workers spend 75% of their time at data.py:7 (tokenize)" in waits.title
    assert waits.advice.startswith("make data.py:7 (tokenize) cheaper")
    # What the line takes while it has a processor.
    assert waits.evidence["saved_ns"] == pytest.approx(0.6 * SECOND_NS)


def test_a_loop_that_waits_names_the_line_of_its_workers(make_profile: MakeProfile) -> None:
    loop = _loop(make_profile)
    found = run_analyzers(loop, only=["data_loading"])
    assert found
    assert all("tokenize" not in each.title for each in found)
    worker = _worker(make_profile, {6: 0.5, 7: 1.5})
    waits = with_worker_lines(found, loop, lambda: [loop, worker])[0]
    assert "its workers spend 75% of their time at data.py:7 (tokenize)" in waits.title
    slept = dataclasses.replace(
        worker.metrics["sampled_cpu_time_ns"], descriptor=SAMPLED_WAIT_TIME_NS
    )
    asleep = dataclasses.replace(worker, metrics=MetricTable({SAMPLED_WAIT_TIME_NS.name: slept}))
    waits = with_worker_lines(found, loop, lambda: [loop, asleep])[0]
    assert "its workers wait 75% of their time at data.py:7 (tokenize)" in waits.title
    assert waits.advice.startswith("start more workers, also more than cores")
    idle = _worker(make_profile, {6: 0.1, 7: 0.2})
    waits = with_worker_lines(found, loop, lambda: [loop, idle])[0]
    assert "its workers" not in waits.title
    assert waits.advice.startswith("load without workers (num_workers=0)")


def test_the_function_whose_lines_take_most_is_named(make_profile: MakeProfile) -> None:
    loop = _loop(make_profile)
    found = run_analyzers(loop, only=["data_loading"])
    frames = [
        *WORKER[:6],
        Frame(FrameKind.PYTHON, "read", "data.py", 3),
        *(Frame(FrameKind.PYTHON, "tokenize", "data.py", line) for line in (7, 8)),
    ]
    run = RunInfo(pid=2, parent_pid=1, wall_ns=4 * SECOND_NS, cpu_count=2)
    worker = make_profile([-1, 0, 1, 2, 3, 4, 5, 5, 5], frames, run=run)
    values = {6: 0.9, 7: 0.8, 8: 0.7}
    worker = _sampled(worker, {node: int(value * SECOND_NS) for node, value in values.items()})
    (waits,) = with_worker_lines(found, loop, lambda: [loop, worker])
    assert waits.title.endswith("spend 62% of their time at data.py:7 (tokenize) and data.py:8")
