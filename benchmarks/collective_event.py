"""What one collective costs in the hooks: `all_reduce` of 256 elements in a group of one process."""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
import torch.distributed as dist
from observers import OBSERVERS
from paired import Table, interleave, lowest_added, machine, quartiles
from ways_in import passing_callbacks

CALLS = 1000
ROUNDS = 121
BOUND_NS = 1500
FLOOR = "callbacks that return"
SHOWN = ("off, again", FLOOR, "empty observer", "deepcontext operators only")


def all_reduce_ns(values: torch.Tensor) -> float:
    """Processor time of all threads, because gloo works on threads of its own."""
    begun = time.process_time_ns()
    for _ in range(CALLS):
        dist.all_reduce(values)
    return (time.process_time_ns() - begun) / CALLS


def measure(rounds: int) -> dict[str, list[float]]:
    values = torch.ones(256)

    def mode(name: str) -> Callable[[], float]:
        def run() -> float:
            with passing_callbacks() if name == FLOOR else OBSERVERS[name]():
                return all_reduce_ns(values)

        return run

    return interleave({name: mode(name) for name in ("off", *SHOWN)}, rounds)


def table(rounds: int = ROUNDS) -> Table:
    # On one processor: what waking a thread on another one takes varies by more than we add.
    where = machine()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "store"
        dist.init_process_group("gloo", init_method=f"file://{store}", rank=0, world_size=1)
        try:
            figures = measure(rounds)
        finally:
            dist.destroy_process_group()
    off = statistics.quantiles(figures["off"], n=10)[0]
    rows = []
    for label, mode, base in (
        *((name, name, "off") for name in SHOWN),
        ("inside deepcontext's callbacks", "deepcontext operators only", FLOOR),
    ):
        extra = lowest_added(figures, mode, base)
        lower, upper = quartiles(figures, mode, base)
        rows.append([
            label,
            f"{extra / 1000:.2f}",
            f"{lower / 1000:.2f} to {upper / 1000:.2f}",
            f"{extra / off:.3f}",
        ])
    return Table(
        "Cost of one collective",
        ["observer", "us added", "middle half of the rounds", "of the collective unprofiled"],
        rows,
        [
            f"`all_reduce` of 256 elements with gloo in a group of one process, {off / 1000:.1f} us "
            f"unprofiled, all threads on one processor; {CALLS} calls a round, {rounds} interleaved "
            "rounds, differences of the lowest deciles, processor time of all threads; beside them "
            "between what values half of the differences within a round lie. *off, again* is the noise. "
            "The operator, the scope of its work and their paths are recorded, and the collective is "
            "numbered. Operators only: without following memory and without CPU samples. The empty "
            "observer is PyTorch's, which asks for the inputs of operators. Inside the callbacks: what "
            "deepcontext adds to callbacks that return at once. Design, for these: at most "
            f"{BOUND_NS / 1000} us and 0.05. `instructions.py` counts the same in instructions. {where}.",
        ],
    )


if __name__ == "__main__":
    print(table(*map(int, sys.argv[1:])).markdown())
