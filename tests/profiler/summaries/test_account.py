"""Elapsed time is divided completely, each part once: by cause, and by line."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepcontext.profiler.format import metric as metrics
from deepcontext.profiler.format.frame import Frame, FrameKind, Phase
from deepcontext.profiler.model.metric_rows import MetricRows
from deepcontext.profiler.model.run_info import RunInfo
from deepcontext.profiler.summaries.account import Account, Cause, account
from deepcontext.profiler.summaries.verdict import Limit, busy_machine, verdicts
from tests.synthetic import random_profile

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deepcontext.profiler.format.metric import MetricDescriptor
    from deepcontext.profiler.model.profile import Profile
    from tests.conftest import MakeProfile

SITE = "/usr/lib/python3.12/site-packages"
CPU, WAIT = metrics.SAMPLED_CPU_TIME_NS, metrics.SAMPLED_WAIT_TIME_NS
READY, GIL = metrics.SAMPLED_READY_TIME_NS, metrics.SAMPLED_GIL_TIME_NS
SAMPLED = (
    CPU,
    WAIT,
    READY,
    GIL,
    metrics.SAMPLED_GIL_WAIT_TIME_NS,
    metrics.SAMPLED_LOCK_WAIT_TIME_NS,
    metrics.SAMPLED_PROCESS_WAIT_TIME_NS,
    metrics.SAMPLED_IO_WAIT_TIME_NS,
    metrics.SAMPLED_SLEEP_TIME_NS,
    metrics.GC_TIME_NS,
    metrics.GPU_TIME_NS,
)


def _line(file: str, line: int = 3, name: str = "f") -> Frame:
    return Frame(FrameKind.PYTHON, name, file, line)


ROOT, MAIN = Frame(FrameKind.ROOT, ""), Frame(FrameKind.THREAD, "MainThread")
OTHER_THREAD = Frame(FrameKind.THREAD, "Thread-N (work)")
USER = _line("/home/me/train.py", 12, "<module>")
DEEPER = _line("/home/me/train.py", 20)
IMPORTED = _line(f"{SITE}/pandas/__init__.py", 1, "<module>")
LOADER = _line(f"{SITE}/torch/utils/data/dataloader.py", 1283, "_Iter._try_get_data")
QUEUE = _line("/usr/lib/python3.12/multiprocessing/queues.py", 103, "Queue.get")


def _with(profile: Profile, values: Mapping[MetricDescriptor, Mapping[int, int]]) -> Profile:
    rows = {}
    for metric, of_node in values.items():
        node = np.array(sorted(of_node), np.uint32)
        total = np.array([of_node[each] for each in node.tolist()], np.int64)
        rows[metric.name] = MetricRows(metric, node, np.ones(len(node), np.uint64), total)
    return dataclasses.replace(profile, metrics={**profile.stored_metrics(), **rows})


def _path(
    make: MakeProfile,
    frames: Sequence[Frame],
    values: Mapping[MetricDescriptor, int],
    wall_ns: int = 100,
) -> Profile:
    """Return a profile of one path from the root, with the values at its end."""
    path = [ROOT, *frames]
    parents = [0, *range(len(path) - 1)]
    profile = make(parents, path, run=RunInfo(wall_ns=wall_ns))
    return _with(profile, {metric: {len(path) - 1: value} for metric, value in values.items()})


def _causes(found: Account) -> dict[Cause, int]:
    return dict(found.causes)


@pytest.mark.parametrize(
    ("below", "values", "causes"),
    [
        ([USER], {CPU: 60, GIL: 50, WAIT: 40}, {"python": 50, "native": 10, "waiting": 40}),
        ([USER, IMPORTED], {CPU: 60, WAIT: 40, READY: 30}, {"importing": 100}),
        ([USER], {WAIT: 100, READY: 30}, {"waiting_processor": 30, "waiting": 70}),
        (
            [USER],
            {WAIT: 100, metrics.SAMPLED_LOCK_WAIT_TIME_NS: 60, metrics.SAMPLED_IO_WAIT_TIME_NS: 40},
            {"waiting_lock": 60, "waiting_io": 40},
        ),
        ([USER], {WAIT: 100, metrics.SAMPLED_SLEEP_TIME_NS: 100}, {"sleeping": 100}),
        # A data loader reads a queue, which reads a pipe: the outermost says what is waited for.
        (
            [USER, LOADER, QUEUE],
            {WAIT: 100, metrics.SAMPLED_IO_WAIT_TIME_NS: 100},
            {"waiting_data": 100},
        ),
        (
            [USER, QUEUE],
            {WAIT: 100, metrics.SAMPLED_IO_WAIT_TIME_NS: 100},
            {"waiting_process": 100},
        ),
        (
            [USER, Frame(FrameKind.MARKER, "jax: wait for the device")],
            {WAIT: 100},
            {"waiting_device": 100},
        ),
        (
            [USER, _line(f"{SITE}/torch/distributed/distributed_c10d.py", 3077, "all_reduce")],
            {WAIT: 100, metrics.SAMPLED_LOCK_WAIT_TIME_NS: 100},
            {"collectives": 100},
        ),
        ([USER, Frame(FrameKind.MARKER, "jax: compiling")], {CPU: 100}, {"compiling": 100}),
        ([USER], {CPU: 80, GIL: 80, metrics.GC_TIME_NS: 30}, {"garbage_collection": 30}),
        ([USER], {CPU: 70}, {"native": 70, "unknown": 30}),
    ],
)
def test_the_cause_of_time_outside_operators(
    make_profile: MakeProfile,
    below: list[Frame],
    values: dict[MetricDescriptor, int],
    causes: dict[str, int],
) -> None:
    found = account(_path(make_profile, [MAIN, *below], values))
    assert _causes(found).items() >= {Cause(name): value for name, value in causes.items()}.items()
    assert sum(_causes(found).values()) == found.whole_ns == 100


@pytest.mark.parametrize(
    ("name", "phase", "cause"),
    [
        ("aten::mm", Phase.FORWARD, Cause.FORWARD),
        ("aten::mm", Phase.BACKWARD, Cause.BACKWARD),
        ("aten::mm", Phase.NONE, Cause.OPERATORS),
        ("c10d::allreduce_", Phase.BACKWARD, Cause.COLLECTIVES),
        ("jit(step)", Phase.NONE, Cause.PROGRAMS),
    ],
)
def test_the_cause_of_time_in_operators(
    make_profile: MakeProfile, name: str, phase: Phase, cause: Cause
) -> None:
    path = [ROOT, MAIN, USER, Frame(FrameKind.OPERATOR, name)]
    profile = make_profile(
        [0, 0, 1, 2],
        path,
        phases=[Phase.NONE] * 3 + [phase],
        host_time_ns={3: 100},
        run=RunInfo(wall_ns=100),
    )
    assert _causes(account(profile)) == {cause: 100}


def test_a_wait_for_the_gpu_is_no_work_of_the_operator(make_profile: MakeProfile) -> None:
    sync = Frame(FrameKind.GPU_API, "cudaStreamSynchronize")
    profile = make_profile(
        [0, 0, 1, 2, 3],
        [ROOT, MAIN, USER, Frame(FrameKind.OPERATOR, "aten::item"), sync],
        host_time_ns={3: 100},
        run=RunInfo(wall_ns=100),
    )
    waits = metrics.MetricDescriptor("sync_wait_ns", "ns", metrics.Aggregation.SUM, "")
    profile = _with(profile, {waits: {4: 70}})
    assert _causes(account(profile)) == {Cause.DEVICE: 70, Cause.OPERATORS: 30}


def test_a_backward_pass_on_another_thread_is_counted_once(make_profile: MakeProfile) -> None:
    """Its operators are on the paths of their forward operators, while the main thread waits."""
    engine = _line(f"{SITE}/torch/autograd/graph.py", 829, "_engine_run_backward")
    profile = make_profile(
        [0, 0, 1, 2, 1, 4],
        [ROOT, MAIN, USER, Frame(FrameKind.OPERATOR, "MmBackward0"), DEEPER, engine],
        phases=[Phase.NONE] * 3 + [Phase.BACKWARD] + [Phase.NONE] * 2,
        host_time_ns={3: 60},
        run=RunInfo(wall_ns=100),
    )
    found = account(_with(profile, {WAIT: {5: 70}, CPU: {2: 20}}))
    assert found.whole_ns == 100
    assert _causes(found) == {Cause.BACKWARD: 60, Cause.NATIVE: 20, Cause.WAITING: 20}


def test_lines_are_those_without_deeper_lines_and_without_imports(
    make_profile: MakeProfile,
) -> None:
    frames = [ROOT, MAIN, USER, DEEPER, IMPORTED, OTHER_THREAD, DEEPER]
    profile = make_profile([0, 0, 1, 2, 2, 0, 5], frames, run=RunInfo(wall_ns=100))
    profile = _with(profile, {CPU: {1: 5, 2: 10, 3: 50, 4: 30, 6: 40}, WAIT: {6: 60}})
    found = account(profile)
    assert [(place.frame, place.time_ns) for place in found.lines] == [
        (DEEPER, 50),
        (USER, 10),
        (None, 5),
    ]
    assert [(place.frame, place.time_ns) for place in found.imports] == [(USER, 30)]
    # The other thread's waits are by design.
    assert [(place.frame, place.time_ns) for place in found.others] == [(DEEPER, 40)]
    assert found.work_ns == 70


@given(nodes=st.integers(2, 60), seed=st.integers(0, 10**6), wall_ns=st.integers(0, 10**10))
def test_the_parts_add_up(nodes: int, seed: int, wall_ns: int) -> None:
    profile = random_profile(nodes, seed=seed, depth=8)
    random = np.random.default_rng(seed)
    values = {
        metric: {
            node: int(random.integers(1, 10**8)) for node in range(nodes) if random.integers(2)
        }
        for metric in SAMPLED
        if random.integers(2)
    }
    profile = dataclasses.replace(profile, run=RunInfo(wall_ns=wall_ns))
    found = account(_with(profile, values))
    assert sum(value for _, value in found.causes) == found.whole_ns >= wall_ns
    assert all(value > 0 for _, value in found.causes)
    lines = sum(place.time_ns for place in found.lines)
    assert lines + found.of(Cause.UNKNOWN) == found.work_ns
    assert sum(place.time_ns for place in found.imports) == found.of(Cause.IMPORTING)
    for place in (*found.lines, *found.imports, *found.others):
        assert sum(value for _, value in place.causes) == place.time_ns


def test_what_is_said_first(make_profile: MakeProfile) -> None:
    busy = account_verdicts(
        _path(make_profile, [MAIN, USER], {WAIT: 40, READY: 40, CPU: 60, GIL: 60})
    )
    assert busy == [Limit.BUSY_MACHINE, Limit.RUNS]
    assert busy_machine(account(_path(make_profile, [MAIN], {CPU: 100}))) == 0
    imports = account_verdicts(_path(make_profile, [MAIN, USER, IMPORTED], {CPU: 90}))
    assert imports == [Limit.IMPORTS]
    compiler = Frame(FrameKind.MARKER, "jax: compiling")
    compiles = _path(make_profile, [MAIN, USER, compiler], {CPU: 90})
    assert account_verdicts(compiles) == [Limit.COMPILES]
    waits = _path(make_profile, [MAIN, USER, LOADER], {WAIT: 80, CPU: 20})
    assert account_verdicts(waits) == [Limit.WAITS]
    assert verdicts(waits)[0].frame == USER
    assert verdicts(waits)[0].share == pytest.approx(0.8)
    assert account_verdicts(_path(make_profile, [MAIN], {}, wall_ns=0)) == []


@pytest.mark.parametrize(("idle", "said"), [(80, Limit.GPU_IDLE), (10, Limit.GPU_BUSY)])
def test_what_is_said_of_a_gpu(make_profile: MakeProfile, idle: int, said: Limit) -> None:
    kernel = Frame(FrameKind.KERNEL, "gemm")
    idles = metrics.MetricDescriptor("gpu_idle_ns", "ns", metrics.Aggregation.SUM, "")
    profile = make_profile([0, 0, 1, 2], [ROOT, MAIN, USER, kernel], run=RunInfo(wall_ns=200))
    profile = _with(
        profile, {CPU: {2: 200}, metrics.GPU_TIME_NS: {3: 100 - idle}, idles: {2: idle}}
    )
    found = verdicts(profile)[0]
    assert found.limit is said
    assert found.share == pytest.approx(idle / 100 if said is Limit.GPU_IDLE else 1 - idle / 100)
    place = account(profile).lines[0]
    assert (place.frame, place.gpu_ns) == (USER, 100 - idle)


def account_verdicts(profile: Profile) -> list[Limit]:
    """Return the kinds of the statements about a profile."""
    return [verdict.limit for verdict in verdicts(profile)]
