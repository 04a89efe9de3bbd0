"""Time to open and query a profile of a million nodes."""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from paired import Table, machine

from deepcontext.profiler.model.profile import Profile

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.synthetic import random_profile

if TYPE_CHECKING:
    from collections.abc import Callable

NODES = 1_000_000
ROUNDS = 5
METRIC = "host_time_ns"


def question(profile: Profile) -> int:
    operators = profile.query().kind("operator").name("aten::*7*").phase("backward")
    return operators.under("python_1*").total(METRIC, inclusive=True)


QUESTIONS: dict[str, Callable[[Profile], object]] = {
    "inclusive values of one metric": lambda p: p.inclusive(METRIC),
    "20 hottest paths": lambda p: p.hot_paths(METRIC, 20),
    "operators of a name, below a function, in backward": question,
    "table by operator name": lambda p: p.query().kind("operator").table(METRIC, "name", limit=20),
    "table by source line": lambda p: p.query().table(METRIC, "line", limit=20),
    "table by module": lambda p: p.query().table(METRIC, "module", limit=20),
}


def timed(call: Callable[[Any], Any], argument: Any) -> tuple[Any, float]:
    """Return the call's result and its elapsed time in ms."""
    begun = time.perf_counter_ns()
    result = call(argument)
    return result, (time.perf_counter_ns() - begun) / 1e6


def measure(nodes: int, rounds: int = ROUNDS) -> tuple[dict[str, list[float]], int]:
    """Return the ms of every step of every round, and the file's size in bytes."""
    made = random_profile(nodes)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.dcprof"
        figures: dict[str, list[float]] = {}
        for _ in range(rounds):
            figures.setdefault("save", []).append(timed(made.save, path)[1])
            # A profile caches what it computed, so every round opens the file anew.
            profile, load_ms = timed(Profile.load, path)
            figures.setdefault("load", []).append(load_ms)
            for name, ask in QUESTIONS.items():
                figures.setdefault(name, []).append(timed(ask, profile)[1])
            both = load_ms + figures["inclusive values of one metric"][-1]
            figures.setdefault("load and inclusive", []).append(both)
        return figures, path.stat().st_size


def table(nodes: int = NODES) -> Table:
    figures, size = measure(nodes)
    rows = [
        [name, f"{statistics.median(values):.0f} ms", f"{max(values):.0f} ms"]
        for name, values in figures.items()
    ]
    note = (
        f"A made-up profile of {nodes:,} nodes, {size / 1e6:.1f} MB on disk; {ROUNDS} rounds. "
        f"Design: load and the inclusive values of one metric below 1.5 s. {machine()}."
    )
    return Table(
        "Opening a large profile",
        ["step", "median", "largest"],
        rows,
        [note],
    )


if __name__ == "__main__":
    print(f"numpy {np.__version__}")
    print(table(int(sys.argv[1]) if len(sys.argv) > 1 else NODES).markdown())
