"""What following memory costs: `torch.empty` of 8 elements and its free in a tight loop."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable

import torch
from paired import Table, added, interleave, machine

from deepcontext.collectors import ALL
from deepcontext.profiler.recording.options import SessionOptions
from deepcontext.profiler.recording.session_manager import SessionManager

CALLS = 1000
REPEATS = 60
ROUNDS = 21
BOUND = 0.12


def pair_ns() -> float:
    """CPU time of one allocation and free; the least of many repeats, because nothing interrupted it."""
    best = float("inf")
    empty = torch.empty
    for _ in range(REPEATS):
        begun = time.thread_time_ns()
        for _ in range(CALLS):
            empty(8)
        best = min(best, (time.thread_time_ns() - begun) / CALLS)
    return best


def in_session(*, memory: bool) -> Callable[[], float]:
    def run() -> float:
        manager = SessionManager()
        manager.start(None, SessionOptions(memory=memory, snapshot_interval=0), ALL)
        try:
            return pair_ns()
        finally:
            manager.stop()

    return run


def table(rounds: int = ROUNDS) -> Table:
    torch.set_num_threads(1)
    modes = {
        "off": pair_ns,
        "off, again": pair_ns,
        "operators": in_session(memory=False),
        "memory": in_session(memory=True),
    }
    figures = interleave(modes, rounds)
    plain = statistics.median(figures["off"])
    rows = [
        [
            "nothing, again: the noise",
            f"{added(figures, 'off, again'):.0f}",
            f"{added(figures, 'off, again') / plain:.3f}",
        ],
        [
            "operators",
            f"{added(figures, 'operators'):.0f}",
            f"{added(figures, 'operators') / plain:.3f}",
        ],
        [
            "memory, on top of that",
            f"{added(figures, 'memory', 'operators'):.0f}",
            f"{added(figures, 'memory', 'operators') / plain:.3f}",
        ],
    ]
    return Table(
        "Cost of one allocation and its free",
        ["followed", "ns added", "of the pair unprofiled"],
        rows,
        [
            f"`torch.empty` of 8 elements and its free, {plain:.0f} ns unprofiled; {CALLS} pairs a "
            f"repeat, least of {REPEATS} repeats, {rounds} rounds, median of the differences within a "
            f"round, thread CPU time. Design: memory adds at most {BOUND:.0%}. {machine()}.",
        ],
    )


if __name__ == "__main__":
    print(table(*map(int, sys.argv[1:])).markdown())
