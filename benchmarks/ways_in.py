"""What PyTorch's ways to observe operators cost by themselves: each with callbacks that do nothing.

Compiles `ways_in.cpp` against PyTorch's headers, which takes a minute.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import torch
from observers import OBSERVERS
from operator_event import at_depth, loop
from paired import Table, interleave, lowest_added, machine, quartiles
from torch.utils.cpp_extension import load

SOURCE = Path(__file__).with_name("ways_in.cpp")
ROUNDS = 41
# What a profiler loses by each way.
WAYS = {
    "callbacks of all threads": "nothing: what deepcontext uses",
    "callbacks of a thread": "threads that the program starts, those of backward among them",
    "with inputs": "nothing; needed for shapes",
    "beginnings only": "how long operators take, and what runs inside them",
    "one call in 100": "99 of 100 calls: counts and times become estimates",
    "scopes of users only": "operators",
    "dispatch key, boxed": "nested operators, backward; breaks compilers that trace dispatch keys",
}


def compiled() -> ModuleType:
    return load("ways_in", [str(SOURCE)], extra_cflags=["-O2"])


@contextlib.contextmanager
def passing_callbacks() -> Iterator[None]:
    """Callbacks of all threads that return at once: the floor of the mechanism."""
    ways, way = compiled(), "callbacks of all threads"
    ways.start(way)
    try:
        yield
    finally:
        ways.stop(way)


def table(rounds: int = ROUNDS) -> Table:
    torch.set_num_threads(1)
    ways = compiled()
    left, right = torch.ones(8, requires_grad=True), torch.ones(8)

    def run() -> float:
        return at_depth(3, lambda: loop(left, right))

    def mode(way: str):
        def observed() -> float:
            ways.start(way)
            try:
                return run()
            finally:
                ways.stop(way)

        return observed

    def profiled() -> float:
        with OBSERVERS["deepcontext operators only"]():
            return run()

    modes = {"off": run, "off, again": run, "deepcontext operators only": profiled}
    figures = interleave({**modes, **{way: mode(way) for way in WAYS}}, rounds)
    rows = []
    for way in ("off, again", *WAYS, "deepcontext operators only"):
        lower, upper = quartiles(figures, way)
        added = f"{lowest_added(figures, way):.0f}"
        rows.append([way, added, f"{lower:.0f} to {upper:.0f}", WAYS.get(way, "")])
    return Table(
        "Ways to observe operators",
        ["way", "ns added to an event", "middle half of the rounds", "what it loses"],
        rows,
        [
            "`torch.add` of 8 elements that require grad, at depth 11; callbacks that return at once, so "
            f"this is PyTorch's own time. {rounds} interleaved rounds, thread CPU time, lowest decile "
            f"less the lowest decile without an observer. {machine()}.",
        ],
    )


if __name__ == "__main__":
    print(table().markdown())
