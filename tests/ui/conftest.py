"""A small training run as a profile on disk, the same for every view."""

from __future__ import annotations

import dataclasses
import os
import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from deepcontext.profiler.format.frame import Frame, FrameKind, Phase
from deepcontext.profiler.format.metric import (
    SAMPLED_CPU_TIME_NS,
    SAMPLED_GIL_TIME_NS,
    SAMPLED_GIL_WAIT_TIME_NS,
    SAMPLED_READY_TIME_NS,
    SAMPLED_WAIT_TIME_NS,
    Aggregation,
    MetricDescriptor,
)
from deepcontext.profiler.format.status import Status
from deepcontext.profiler.model.metric_rows import MetricRows
from deepcontext.profiler.model.metric_table import MetricTable
from deepcontext.profiler.model.profile import Profile
from deepcontext.profiler.model.run_info import RunInfo
from deepcontext.profiler.model.trust import CollectorReport, TrustReport
from tests.ui.engine import answers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    Engine = Callable[..., list[Any]]

STARTED_UNIX_NS = 1_767_225_600 * 10**9  # 2026-01-01 00:00:00 UTC
PROGRAM = """\
import torch
from model import Net


def train(net, loader, optimizer):
    for inputs, targets in loader:
        loss = torch.nn.functional.mse_loss(net(inputs), targets)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


train(Net(), make_loader(batch_size=64), torch.optim.AdamW(net.parameters(), lr=1e-3))
"""
KERNEL = "void at::native::(anonymous namespace)::softmax_forward<4, float, float>(float*, int)"
LIBRARY = "/usr/lib/python3.11/site-packages/torch/nn/modules/linear.py"


@pytest.fixture(scope="session")
def engine() -> Engine:
    """Return a function that answers questions with the page's engine, in Node."""
    if shutil.which("npm") is None:
        pytest.skip("node is not installed: the page's engine is not run")
    return answers


@dataclass
class Node:
    """A node of the small training run: `ns` is its exclusive time, `calls` its single calls."""

    frame: Frame
    children: list[Node] = field(default_factory=list)
    phase: Phase = Phase.NONE
    ns: int = 0
    calls: list[int] = field(default_factory=list)


@pytest.fixture
def training_folder(tmp_path: Path, make_profile: Any) -> Path:
    """Return a folder with train.py and the profiles (.dcprof) that the reports show."""
    script = tmp_path / "train.py"
    script.write_text(PROGRAM, encoding="utf-8")
    os.utime(script, ns=(STARTED_UNIX_NS - 10**9,) * 2)
    run = run_info(tmp_path)
    training_profile(make_profile, tmp_path).save(tmp_path / "train.dcprof")
    root = [Frame(FrameKind.ROOT, "")]
    off = CollectorReport("torch", Status.OFF, "the program did not import torch")
    empty = make_profile([0], root, run=run, trust=TrustReport((off,)))
    empty.save(tmp_path / "empty.dcprof")
    troubled = with_samples(training_profile(make_profile, tmp_path, troubled_trust()))
    troubled.save(tmp_path / "troubled.dcprof")
    plain_profile(make_profile, tmp_path).save(tmp_path / "plain.dcprof")
    left_profile(make_profile, tmp_path).save(tmp_path / "left.dcprof")
    spawned_profile(make_profile, tmp_path).save(tmp_path / "spawned.dcprof")
    return tmp_path


def left_profile(make_profile: Any, folder: Path) -> Profile:
    """Return the profile of a program that leaves its loop to a trainer."""

    def installed(name: str, file: str, line: int, *children: Node) -> Node:
        file = LIBRARY.partition("torch/")[0] + file
        return Node(Frame(FrameKind.PYTHON, name, file, line), list(children))

    attention = _operator("aten::scaled_dot_product_attention", Phase.FORWARD, 900_000_000)
    projection = _operator("aten::addmm", Phase.FORWARD, 1_200_000_000)
    model = installed(
        "Model.forward",
        "transformers/model.py",
        243,
        Node(Frame(FrameKind.MODULE, "Attention 'layers.0'"), [attention]),
        Node(Frame(FrameKind.MODULE, "Linear 'head'"), [projection]),
    )
    stepping = installed(
        "AcceleratedOptimizer.step",
        "accelerate/optimizer.py",
        186,
        _operator("aten::_foreach_add_", Phase.OPTIMIZER, 300_000_000),
    )
    loop = installed("Trainer.train", "transformers/trainer.py", 1800, model, stepping)
    script = str(folder / "train.py")
    line = Node(Frame(FrameKind.PYTHON, "<module>", script, 13), [loop])
    nodes = list(_flattened(Node(Frame(FrameKind.ROOT, ""), [_thread(line)]), 0))
    profile = make_profile(
        [parent for parent, _ in nodes],
        [node.frame for _, node in nodes],
        phases=[node.phase for _, node in nodes],
        host_time_ns={at: node.ns for at, (_, node) in enumerate(nodes) if node.ns},
        call_samples_ns={at: node.calls for at, (_, node) in enumerate(nodes) if node.calls},
        run=dataclasses.replace(run_info(folder), steps=0),
    )
    return _with_samples_at(profile, {3: 400_000_000}, {3: 100_000_000})


def spawned_profile(make_profile: Any, folder: Path) -> Profile:
    """Return the profile of a child that multiprocessing spawned, as it recorded itself."""
    site = LIBRARY.partition("torch/")[0]
    frames = [
        Frame(FrameKind.ROOT, ""),
        Frame(FrameKind.THREAD, "MainThread"),
        Frame(FrameKind.PYTHON, "<module>", "<string>", 1),
        Frame(FrameKind.PYTHON, "spawn_main", "/usr/lib/python3.11/multiprocessing/spawn.py", 122),
        Frame(FrameKind.PYTHON, "EngineCore.run", f"{site}engine/core.py", 310),
        Frame(FrameKind.PYTHON, "Scheduler.schedule", f"{site}engine/scheduler.py", 77),
        Frame(FrameKind.PYTHON, "Queue.get", "/usr/lib/python3.11/queue.py", 180),
    ]
    run = dataclasses.replace(run_info(folder), script="", command=(), steps=0, frameworks={})
    profile = make_profile([0, 0, 1, 2, 3, 4, 4], frames, run=run)
    return _with_samples_at(profile, {4: 20_000_000, 5: 2_100_000_000}, {6: 1_900_000_000})


def _thread(child: Node) -> Node:
    return Node(Frame(FrameKind.THREAD, "MainThread"), [child])


def _with_samples_at(profile: Profile, running: dict[int, int], waiting: dict[int, int]) -> Profile:
    """Return the profile with ns of running and waiting at these nodes."""
    rows = {
        metric.name: MetricRows(
            metric,
            node=np.array(list(times), np.uint32),
            count=np.ones(len(times), np.uint64),
            total=np.array(list(times.values()), np.int64),
        )
        for metric, times in ((SAMPLED_CPU_TIME_NS, running), (SAMPLED_WAIT_TIME_NS, waiting))
    }
    stored = {name: profile.metrics[name] for name in profile.stored_metrics()}
    return dataclasses.replace(profile, metrics=MetricTable({**stored, **rows}))


def plain_profile(make_profile: Any, folder: Path) -> Profile:
    """Return the profile of a program without a framework, which reads, computes and waits."""
    file = str(folder / "prepare.py")
    frames = [
        Frame(FrameKind.ROOT, ""),
        Frame(FrameKind.THREAD, "MainThread"),
        Frame(FrameKind.PYTHON, "<module>", file, 20),
        Frame(FrameKind.PYTHON, "clean", file, 8),
        Frame(FrameKind.PYTHON, "DataFrame.merge", LIBRARY.replace("torch", "pandas"), 90),
        Frame(FrameKind.PYTHON, "upload", file, 15),
        Frame(FrameKind.THREAD, "Thread-N (reader)"),
        Frame(FrameKind.PYTHON, "reader", file, 4),
    ]
    run = dataclasses.replace(
        run_info(folder), command=("python3.11", "prepare.py"), script="prepare.py", frameworks={}
    )
    reasons = {
        "torch": "the program did not import torch",
        "nvidia": "no NVIDIA driver on this machine",
    }
    trust = TrustReport(
        tuple(CollectorReport(name, Status.OFF, reason) for name, reason in reasons.items())
    )
    profile = make_profile([0, 0, 1, 2, 3, 2, 0, 6], frames, run=run, trust=trust)
    profile = dataclasses.replace(profile, run=dataclasses.replace(run, steps=0))
    running = {3: 300_000_000, 4: 1_900_000_000, 5: 20_000_000, 7: 700_000_000}
    waiting = {3: 10_000_000, 5: 1_970_000_000, 7: 3_500_000_000}
    return _with_samples_at(profile, running, waiting)


def with_samples(profile: Profile) -> Profile:
    """Return the profile with 10 ms running and 20 ms waiting at each Python frame."""
    python = np.flatnonzero(profile.frames.kind[profile.tree.frame] == FrameKind.PYTHON)
    spent = {
        SAMPLED_CPU_TIME_NS: 10_000_000,
        SAMPLED_GIL_TIME_NS: 8_000_000,
        SAMPLED_WAIT_TIME_NS: 20_000_000,
        SAMPLED_READY_TIME_NS: 2_000_000,
        SAMPLED_GIL_WAIT_TIME_NS: 5_000_000,
    }
    metrics = {name: profile.metrics[name] for name in profile.metrics} | {
        metric.name: MetricRows(
            metric,
            node=python.astype(np.uint32),
            count=np.ones(len(python), np.uint64),
            total=np.full(len(python), value, np.int64),
        )
        for metric, value in spent.items()
    }
    return Profile(
        frames=profile.frames,
        tree=profile.tree,
        metrics=MetricTable(metrics),
        run=profile.run,
        trust=profile.trust,
        sections={},
    )


def gpu_profile(make_profile: Any, *, with_operator: bool) -> Profile:
    """Return a profile of 24 ms in 8 launches of one kernel with a long name, below train.py:7."""
    frames = [
        Frame(FrameKind.ROOT, ""),
        Frame(FrameKind.THREAD, "MainThread"),
        Frame(FrameKind.PYTHON, "train", "/home/me/train.py", 7),
        *([Frame(FrameKind.OPERATOR, "aten::softmax")] if with_operator else []),
        Frame(FrameKind.KERNEL, KERNEL),
    ]
    last = len(frames) - 1
    host = {"host_time_ns": {3: 5_000_000}, "call_samples_ns": {3: [5_000_000]}}
    profile = make_profile(
        [max(place - 1, 0) for place in range(len(frames))],
        frames,
        run=RunInfo(command=("python", "train.py"), wall_ns=50_000_000),
        **(host if with_operator else {}),
    )

    def rows(name: str, unit: str, value: int) -> MetricRows:
        return MetricRows(
            MetricDescriptor(name, unit, Aggregation.SUM, ""),
            node=np.array([last], np.uint32),
            count=np.array([8], np.uint64),
            total=np.array([value], np.int64),
        )

    more = {
        "gpu_time_ns": rows("gpu_time_ns", "ns", 24_000_000),
        "launch_count": rows("launch_count", "count", 8),
    }
    metrics = MetricTable({**{name: profile.metrics[name] for name in profile.metrics}, **more})
    return dataclasses.replace(profile, metrics=metrics)


def run_info(folder: Path) -> RunInfo:
    return RunInfo(
        command=("/usr/bin/python3.11", "train.py", "--run name", "first try"),
        script="train.py",
        cwd=str(folder),
        python="CPython 3.11.2",
        platform="linux 6.1.0 x86_64",
        hostname="box",
        cpu_model="Example CPU 3000",
        cpu_count=8,
        frameworks={"torch": "2.13.0"},
        start_unix_ns=STARTED_UNIX_NS,
        wall_ns=4_200_000_000,
        cpu_user_ns=7_000_000_000,
        cpu_system_ns=400_000_000,
        peak_rss_bytes=512 * 2**20,
        pid=42,
        exit_reason="exit",
        steps=4,
    )


def troubled_trust() -> TrustReport:
    return TrustReport(
        (
            CollectorReport("python", Status.DEGRADED, "no code watchers: labels may be wrong"),
            CollectorReport("torch", Status.RAN, "", {"torch": "2.13.0"}),
            CollectorReport("nvidia", Status.UNAVAILABLE, "libcupti.so was not found"),
        ),
        {"operator_events": 1_234_567, "backward_links_missed": 12, "dropped": 0},
        hook_cost_ns_per_event=118.4,
        notes=("12 backward operators were not found under their forward operator",),
    )


def training_profile(
    make_profile: Callable[..., Profile], folder: Path, trust: TrustReport | None = None
) -> Profile:
    default = TrustReport(
        (
            CollectorReport("python", Status.RAN, "", {"python": "3.11.2"}),
            CollectorReport("torch", Status.RAN, "", {"torch": "2.13.0"}),
        ),
        {"operator_events": 96, "nodes": 30, "dropped": 0},
        hook_cost_ns_per_event=118.4,
    )
    nodes = list(_flattened(_training_run(str(folder / "train.py")), 0))
    return make_profile(
        [parent for parent, _ in nodes],
        [node.frame for _, node in nodes],
        phases=[node.phase for _, node in nodes],
        host_time_ns={at: node.ns for at, (_, node) in enumerate(nodes) if node.ns},
        call_samples_ns={at: node.calls for at, (_, node) in enumerate(nodes) if node.calls},
        step_samples_ns=[900_000_000, 1_000_000_000, 1_050_000_000, 1_010_000_000],
        run=run_info(folder),
        trust=trust or default,
    )


def _flattened(node: Node, parent: int, at: int = 0) -> Iterable[tuple[int, Node]]:
    """Yield (parent, node) in pre-order; `at` is the number of the first."""
    yield parent, node
    following = at + 1
    for child in node.children:
        below = list(_flattened(child, at, following))
        yield from below
        following += len(below)


def _training_run(script: str) -> Node:
    def python(name: str, line: int, *children: Node, file: str = script) -> Node:
        return Node(Frame(FrameKind.PYTHON, name, file, line), list(children))

    loading = Node(
        Frame(FrameKind.SCOPE, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"),
        [_operator("aten::stack", Phase.DATA_LOADING, 20_000_000)],
        Phase.DATA_LOADING,
        ns=80_000_000,
        calls=[25_000_000] * 4,
    )
    stepping = Node(
        Frame(FrameKind.SCOPE, "Optimizer.step#AdamW.step"),
        [
            _operator("aten::_foreach_add_", Phase.OPTIMIZER, 90_000_000),
            _operator("aten::_foreach_addcdiv_", Phase.OPTIMIZER, 140_000_000),
        ],
        Phase.OPTIMIZER,
        ns=10_000_000,
        calls=[60_000_000] * 4,
    )
    layers = [_layer(python, index, 180_000_000 + 60_000_000 * index) for index in range(4)]
    net = Node(
        Frame(FrameKind.MODULE, "Net"),
        [python("Net.forward", 21, *layers, file=script.replace("train.py", "model.py"))],
    )
    loss = _operator(
        "aten::mse_loss",
        Phase.FORWARD,
        30_000_000,
        _operator("MseLossBackward0", Phase.BACKWARD, 26_000_000),
    )
    accumulate = _operator("torch::autograd::AccumulateGrad", Phase.BACKWARD, 4_000_000)
    train = python(
        "<module>",
        13,
        python("train", 6, loading),
        python("train", 7, net, loss),
        python("train", 8, accumulate),
        python("train", 9, stepping),
    )
    thread = Node(Frame(FrameKind.THREAD, "MainThread"), [train])
    return Node(Frame(FrameKind.ROOT, ""), [thread])


def _operator(name: str, phase: Phase, ns: int, *children: Node) -> Node:
    calls = [ns // 4 - 3_000_000, ns // 4 - 1_000_000, ns // 4 + 1_000_000, ns // 4 + 3_000_000]
    return Node(
        Frame(FrameKind.OPERATOR, name), list(children), phase, ns, [max(each, 1) for each in calls]
    )


def _layer(python: Callable[..., Node], index: int, ns: int) -> Node:
    backward = _operator(
        "AddmmBackward0", Phase.BACKWARD, 9_000_000, _operator("aten::mm", Phase.BACKWARD, 2 * ns)
    )
    linear = _operator(
        "aten::linear",
        Phase.FORWARD,
        5_000_000,
        _operator("aten::addmm", Phase.FORWARD, ns, backward),
    )
    forward = python("Linear.forward", 134, linear, file=LIBRARY)
    return Node(Frame(FrameKind.MODULE, f"Linear 'encoder.layers.{index}.linear'"), [forward])
