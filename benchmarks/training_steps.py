"""What profiling adds to a training step, and what stopping costs afterwards."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import torch
from observers import OBSERVERS, Exit
from paired import Table, interleave, machine, quiet_descriptors, ratio
from training_models import MODELS

STEPS = 40
ROUNDS = 15
SHOWN = (
    "off, again",
    "outside a recording",
    "empty observer",
    "deepcontext",
    "deepcontext operators only",
    "deepcontext operators, shapes",
    "torch.profiler",
    "torch.profiler with_stack",
    "torch.profiler all",
)


def block(step: Callable[[], None]) -> float:
    """Median time of one step in a block, ns."""
    times = []
    for _ in range(STEPS):
        begun = time.perf_counter_ns()
        step()
        times.append(time.perf_counter_ns() - begun)
    return statistics.median(times)


def table(rounds: int = ROUNDS) -> Table:
    torch.set_num_threads(1)
    rows = []
    for name, make in MODELS.items():
        step = make()
        block(step)
        exits: dict[str, list[float]] = {shown: [] for shown in SHOWN}

        def mode(observer: str, step: Callable[[], None] = step, exits=exits) -> float:
            Exit.ns = 0
            with OBSERVERS[observer]():
                figure = block(step)
            if observer in exits:
                exits[observer].append(Exit.ns / STEPS)
            return figure

        with quiet_descriptors():
            figures = interleave(
                {shown: lambda shown=shown: mode(shown) for shown in ("off", *SHOWN)}, rounds
            )
        stack = ratio(figures, "torch.profiler with_stack") - 1
        off = statistics.median(figures["off"])
        for shown in SHOWN:
            slower = ratio(figures, shown)
            lower, upper = statistics.quantiles(
                [one / other for one, other in zip(figures[shown], figures["off"], strict=True)],
                n=4,
            )[::2]
            rows.append([
                f"{name} ({off / 1e6:.2f} ms)",
                shown,
                f"{slower:.3f}x",
                f"{lower:.3f} to {upper:.3f}",
                f"{(slower - 1) / stack:.2f}",
                f"{statistics.median(exits[shown]) / off:.2f}x",
            ])
    return Table(
        "Training steps",
        [
            "step",
            "observer",
            "time of a step",
            "middle half of the rounds",
            "added, of with_stack",
            "exit, per profiled step",
        ],
        rows,
        [
            f"Median step of a block of {STEPS}, {rounds} interleaved rounds, median of the ratios "
            "within a round, one thread. *off, again* is the noise. The last column is what leaving "
            "torch.profiler costs on top, in step times. Goal: the defaults add at most 0.4 of what "
            f"with_stack adds; not to be left: half. {machine()}.",
        ],
    )


if __name__ == "__main__":
    print(table().markdown())
