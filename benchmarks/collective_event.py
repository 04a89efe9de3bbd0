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
from observers import deepcontext_session, empty_observer
from paired import Table, interleave, machine

from deepcontext import _native

CALLS = 1000
ROUNDS = 61
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

    def registered() -> float:
        with deepcontext_session(cpu_rate=0, memory=False):
            _native.end()  # the observer stays, and its callbacks return at once
            return all_reduce_ns(values)

    def observed() -> float:
        with empty_observer():
            return all_reduce_ns(values)

    modes: dict[str, Callable[[], float]] = {
        "off": lambda: all_reduce_ns(values),
        "observed": observed,
        "registered": registered,
        "profiled": profiled,
    }
    return interleave(modes, rounds)


def _low(values: list[float]) -> float:
    """Return the lowest decile: gloo wakes threads, and what that takes varies by more than we add."""
    return statistics.quantiles(values, n=10)[0]


def table(rounds: int = ROUNDS) -> Table:
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "store"
        dist.init_process_group("gloo", init_method=f"file://{store}", rank=0, world_size=1)
        try:
            figures = measure(rounds)
        finally:
            dist.destroy_process_group()
    off, empty, ours, registered = (
        _low(figures[mode]) for mode in ("off", "observed", "profiled", "registered")
    )
    empty, ours, alone = empty - off, ours - off, ours - registered
    return Table(
        "Cost of one collective",
        ["observer", "us added", "of the collective unprofiled"],
        [
            ["empty observer with inputs", f"{empty / 1000:.2f}", f"{empty / off:.3f}"],
            ["deepcontext operators only", f"{ours / 1000:.2f}", f"{ours / off:.3f}"],
            ["of that, inside its callbacks", f"{alone / 1000:.2f}", f"{alone / off:.3f}"],
        ],
        [
            f"`all_reduce` of 256 elements with gloo in a group of one process, {off / 1000:.1f} us "
            f"unprofiled; {CALLS} calls a round, {rounds} rounds, differences of the lowest "
            "deciles, processor time of all threads. The operator, the scope of its work and their "
            "paths are recorded, and the collective is numbered. Operators only: without following "
            f"memory and without CPU samples. The figures contain torch's own cost of having an "
            "observer; the empty observer asks for inputs, which deepcontext does not, so it is no "
            "floor. Inside its callbacks: what the same observer adds to one whose callbacks return at "
            f"once. Design, for these: at most {BOUND_NS / 1000} us and 0.05. {machine()}.",
        ],
    )


if __name__ == "__main__":
    print(table(*map(int, sys.argv[1:])).markdown())
