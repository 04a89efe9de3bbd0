"""Time of all analyzers on a profile of a million nodes."""

from __future__ import annotations

import dataclasses
import statistics
import sys
import time

from paired import Table, machine

from deepcontext.analyzers import ALL
from deepcontext.collectors.gpu_metrics import GPU_METRICS
from deepcontext.profiler.metric import CPU_TIME_NS, MetricRows
from deepcontext.profiler.profile import Profile
from deepcontext.profiler.synthetic import random_profile

NODES = 1_000_000
ROUNDS = 5
BOUND_MS = 1000.0


def measure(nodes: int, rounds: int = ROUNDS) -> dict[str, list[float]]:
    """Return the ms of every analyzer of every round."""
    content = _with_device(random_profile(nodes)).to_bytes()
    figures: dict[str, list[float]] = {}
    for _ in range(rounds):
        # A profile keeps what it computed, so every round opens it anew.
        profile = Profile.from_bytes(content)
        begun_all = time.perf_counter_ns()
        for analyzer in ALL:
            begun = time.perf_counter_ns()
            list(analyzer.find(profile))
            spent = (time.perf_counter_ns() - begun) / 1e6
            figures.setdefault(analyzer.id, []).append(spent)
        figures.setdefault("all", []).append((time.perf_counter_ns() - begun_all) / 1e6)
    return figures


def _with_device(profile: Profile) -> Profile:
    """Return the profile with all metrics of a GPU, so that no analyzer is silent for want of one."""
    rows = profile.metrics[CPU_TIME_NS.name]
    # Those of CPU time, with no minimum or maximum: they are sums and counts.
    device = {
        each.name: MetricRows(each, rows.node, rows.count, rows.total) for each in GPU_METRICS
    }
    return dataclasses.replace(
        profile,
        metrics={**profile.metrics, **device},
        sections={
            **profile.sections,
            "gpu_nvidia": b'{"devices": [{"multiprocessor_count": 132}]}',
        },
    )


def table(nodes: int = NODES) -> Table:
    figures = measure(nodes)
    rows = [
        [name, f"{statistics.median(values):.0f} ms", f"{max(values):.0f} ms"]
        for name, values in figures.items()
    ]
    note = (
        f"A made-up profile of {nodes:,} nodes with all metrics of a GPU; {ROUNDS} rounds, each on "
        "a profile just opened. "
        f"Design: all below {BOUND_MS:.0f} ms. {machine()}."
    )
    return Table("Analyzing a large profile", ["analyzer", "median", "largest"], rows, [note])


if __name__ == "__main__":
    print(table(int(sys.argv[1]) if len(sys.argv) > 1 else NODES).markdown())
