"""What one collective costs in the hooks: `all_reduce` of 256 elements in a group of one process."""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
import torch.distributed as dist
from observers import deepcontext_session
from paired import Table, added, interleave, machine

CALLS = 1000
ROUNDS = 21
BOUND_NS = 1500


def all_reduce_ns(values: torch.Tensor) -> float:
    """Processor time of all threads, because gloo works on threads of its own."""
    begun = time.process_time_ns()
    for _ in range(CALLS):
        dist.all_reduce(values)
    return (time.process_time_ns() - begun) / CALLS


def measure(rounds: int) -> dict[str, list[float]]:
    values = torch.ones(256)

    def profiled() -> float:
        with deepcontext_session(cpu_rate=0, memory=False):
            return all_reduce_ns(values)

    modes: dict[str, Callable[[], float]] = {
        "off": lambda: all_reduce_ns(values),
        "profiled": profiled,
    }
    return interleave(modes, rounds)


def table(rounds: int = ROUNDS) -> Table:
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "store"
        dist.init_process_group("gloo", init_method=f"file://{store}", rank=0, world_size=1)
        try:
            figures = measure(rounds)
        finally:
            dist.destroy_process_group()
    off = statistics.median(figures["off"])
    more = added(figures, "profiled")
    return Table(
        title="One collective",
        columns=("`all_reduce`", "added by a session", "share"),
        rows=((f"{off / 1000:.1f} us", f"{more / 1000:.2f} us", f"{more / off:.1%}"),),
        notes=(
            f"gloo, one process, 256 elements; processor time of all threads, median of {rounds} "
            f"interleaved rounds. {machine()}",
            f"The operator, the scope of its work and their call path are recorded, and the collective "
            f"is numbered. Bound of the design: {BOUND_NS / 1000} us.",
        ),
    )


if __name__ == "__main__":
    print(table(*map(int, sys.argv[1:])).markdown())
