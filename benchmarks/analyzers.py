"""Processor time of all analyzers, which run on one thread, on a profile of a million nodes."""

from __future__ import annotations

import dataclasses
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from paired import Table, machine

from deepcontext.analyzers import catalogue
from deepcontext.analyzers.answers import QUESTIONS
from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.format.gpu_metrics import GPU_METRICS
from deepcontext.profiler.format.memory_metrics import METRICS as MEMORY_METRICS
from deepcontext.profiler.format.metric import HOST_TIME_NS, MetricDescriptor
from deepcontext.profiler.model.metric_rows import MetricRows
from deepcontext.profiler.model.profile import Profile
from deepcontext.ui.cli.heap import keep_freed_memory

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.synthetic import random_profile

if TYPE_CHECKING:
    from collections.abc import Sequence

NODES = 1_000_000
ROUNDS = 5
BOUND_MS = 1000.0
_DEVICE = b'{"devices": [{"multiprocessor_count": 132}]}'
_MEMORY = b'{"version": 1, "steps": 100, "growth_since_step": 8, "untracked_bytes": 0, "pools": []}'


def measure(content: bytes, rounds: int = ROUNDS) -> dict[str, list[float]]:
    """Return the processor ms of every question of every round."""
    keep_freed_memory()  # as `deepcontext analyze` does
    figures: dict[str, list[float]] = {}
    for _ in range(rounds):
        # A profile caches what it computed, so every round opens it anew.
        profile = Profile.from_bytes(content)
        begun_all = time.process_time_ns()
        for question in QUESTIONS:
            begun = time.process_time_ns()
            list(question.find(profile))
            spent = (time.process_time_ns() - begun) / 1e6
            figures.setdefault(question.__name__.rpartition(".")[2], []).append(spent)
        figures.setdefault("all", []).append((time.process_time_ns() - begun_all) / 1e6)
    return figures


def _with_names(profile: Profile) -> Profile:
    """Return the profile with operators that analyzers know, each as often as the others."""
    frames = profile.frames
    names = [
        *sorted(catalogue.operators("pointwise dense copies joins reads_value softmax")),
        "aten::index",
        "aten::embedding",
    ]
    name = frames.name.copy()
    operators = np.flatnonzero(frames.kind == FrameKind.OPERATOR)
    name[operators] = len(frames.strings) + np.arange(len(operators)) % len(names)
    strings = (*frames.strings, *names)
    return dataclasses.replace(
        profile, frames=dataclasses.replace(frames, name=name, strings=strings)
    )


def _with(profile: Profile, metrics: Sequence[MetricDescriptor], **sections: bytes) -> Profile:
    """Return the profile with more metrics, so that every analyzer has what it needs."""
    rows = profile.metrics[HOST_TIME_NS.name]
    # Those of CPU time, with no minimum or maximum: they are sums and counts.
    more = {each.name: MetricRows(each, rows.node, rows.count, rows.total) for each in metrics}
    return dataclasses.replace(
        profile,
        metrics={**profile.metrics, **more},
        sections={**profile.sections, **sections},
    )


def table(nodes: int = NODES) -> Table:
    host = _with(_with_names(random_profile(nodes)), MEMORY_METRICS, memory=_MEMORY)
    device = _with(host, GPU_METRICS, gpu_nvidia=_DEVICE)
    columns = [measure(each.to_bytes()) for each in (host, device)]
    rows = [
        [name, *(f"{statistics.median(column[name]):.0f} ms" for column in columns)]
        for name in columns[0]
    ]
    note = (
        f"A made-up profile of {nodes:,} nodes, whose operators are those that analyzers look for, with "
        f"the metrics of memory, and then also with those of a GPU; medians of the processor time of "
        f"{ROUNDS} rounds, each on a profile just opened. "
        f"Design: all below {BOUND_MS:.0f} ms. {machine()}."
    )
    return Table(
        "Analyzing a large profile", ["question", "without a GPU", "with one"], rows, [note]
    )


if __name__ == "__main__":
    print(table(int(sys.argv[1]) if len(sys.argv) > 1 else NODES).markdown())
