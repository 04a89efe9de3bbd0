"""Processor time and the time of stop for a program whose call paths hardly repeat."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from paired import Table, interleave, machine, ratio

ITERATIONS = (1500, 12_000)
ROUNDS = 5
# Each iteration goes through ten functions drawn at random of four, so that nearly each is a new path.
CHILD = """
import json, os, random, sys, time
import torch
import deepcontext
torch.set_num_threads(1)
path, iterations = sys.argv[1], int(sys.argv[2])
drawn, x = random.Random(0), torch.ones(4)
def leaf(): return torch.tanh(x)
def a(d): return step(d) + 1
def b(d): return step(d) * 2
def c(d): return torch.relu(step(d))
def e(d):
    return step(d).neg()
def step(d):
    return leaf() if d == 0 else drawn.choice((a, b, c, e))(d - 1)
for _ in range(20):
    step(10)
session = deepcontext.start(path, snapshot_interval=0) if path else None
begun = time.process_time_ns()
for _ in range(iterations):
    step(10).sum().item()
figures = {"program_ns": time.process_time_ns() - begun}
if session:
    begun, elapsed = time.process_time_ns(), time.perf_counter_ns()
    deepcontext.stop()
    figures["stop_ns"] = time.process_time_ns() - begun
    figures["stop_elapsed_ns"] = time.perf_counter_ns() - elapsed
    figures["nodes"] = len(deepcontext.Profile.load(path).tree)
print(json.dumps(figures))
"""


def measure(iterations: int, *, is_profiled: bool) -> dict[str, int]:
    """Run one process; times in nanoseconds, those without `elapsed` of the processor."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "paths.dcprof") if is_profiled else ""
        done = subprocess.run(
            [sys.executable, "-c", CHILD, path, str(iterations)],
            check=True,
            capture_output=True,
            text=True,
        )
    figures: dict[str, int] = json.loads(done.stdout.splitlines()[-1])
    return figures


def table(rounds: int = ROUNDS) -> Table:
    rows = []
    for iterations in ITERATIONS:
        profiled: list[dict[str, int]] = []

        def on(iterations: int = iterations, profiled: list[dict[str, int]] = profiled) -> float:
            profiled.append(measure(iterations, is_profiled=True))
            return profiled[-1]["program_ns"]

        def off(iterations: int = iterations) -> float:
            return measure(iterations, is_profiled=False)["program_ns"]

        figures = interleave({"off": off, "on": on}, rounds)
        kept = profiled[-rounds:]

        def middle(name: str, kept: list[dict[str, int]] = kept) -> float:
            return statistics.median(figure[name] for figure in kept)

        rows.append([
            f"{iterations:,}",
            f"{middle('nodes'):,.0f}",
            f"{statistics.median(figures['off']) / 1e9:.2f} s",
            f"{ratio(figures, 'on'):.2f}x",
            f"{middle('stop_ns') / 1e6:.0f} ms",
            f"{middle('stop_elapsed_ns') / 1e6:.0f} ms",
        ])
    return Table(
        "Many paths",
        ["iterations", "nodes", "unprofiled", "profiled", "stop", "stop, elapsed"],
        rows,
        [
            "Nearly each iteration has a path of its own, so that every operator makes nodes: the worst "
            "case of a calling context tree. Times are processor time of all threads, the profiled "
            "program's without stop. Design: stop below 500 ms at 300,000 nodes. "
            f"{machine()}.",
        ],
    )


if __name__ == "__main__":
    print(f"torch {torch.__version__}")
    print(table().markdown())
