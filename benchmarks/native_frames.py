"""What `--native` adds to a profiled run of examples/torch_transformer.py."""

from __future__ import annotations

import argparse
import contextlib
import io
import statistics
import sys
import time
from pathlib import Path

import torch
from paired import Table, interleave, machine, ratio

import deepcontext

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))

import torch_transformer

ROUNDS = 15
# As the example is by default, and so small that hardly anything but the framework runs.
SIZES = {
    "as it is": {"steps": 6, "batch_size": 16, "layers": 4, "heads": 4, "width": 128},
    "tiny": {"steps": 20, "batch_size": 2, "layers": 4, "heads": 4, "width": 16},
}
REST = {"lr": 1e-3, "workers": 0, "threads": 1, "print_every": 1000, "seed": 0}


def train(size: dict[str, int]) -> float:
    """Processor time of the training thread for one run, ns."""
    options = argparse.Namespace(**size, **REST)
    begun = time.thread_time_ns()
    with contextlib.redirect_stdout(io.StringIO()):
        torch_transformer.train(options)
    return float(time.thread_time_ns() - begun)


def profiled(size: dict[str, int], **options: bool) -> float:
    deepcontext.start(**options)
    try:
        return train(size)
    finally:
        deepcontext.stop()


def events(size: dict[str, int]) -> tuple[int, float]:
    """Operators of a run, and native frames seen at each."""
    deepcontext.start(native=True)
    train(size)
    counters = deepcontext.stop().trust.counters
    return counters["operator_events"], counters["native_frames"] / counters["operator_events"]


def table(rounds: int = ROUNDS) -> Table:
    torch.set_num_threads(1)
    rows = []
    for name, size in SIZES.items():
        operators, frames = events(size)
        figures = interleave(
            {
                "off": lambda size=size: train(size),
                "without": lambda size=size: profiled(size),
                "again": lambda size=size: profiled(size),
                "native": lambda size=size: profiled(size, native=True),
            },
            rounds,
        )
        off = statistics.median(figures["off"])
        rows.append([
            f"{name} ({off / size['steps'] / 1e6:.1f} ms a step)",
            f"{operators / size['steps']:.0f}",
            f"{frames:.1f}",
            f"{ratio(figures, 'again', 'without'):.3f}x",
            f"{ratio(figures, 'native', 'without'):.3f}x",
            f"{ratio(figures, 'native'):.3f}x",
        ])
    return Table(
        "Native frames",
        [
            "transformer example",
            "operators a step",
            "native frames at each",
            "without, twice",
            "with against without",
            "with against unprofiled",
        ],
        rows,
        [
            f"Processor time of the training thread, {rounds} interleaved rounds, median of the "
            "ratios within a round, one thread inside an operator. 'without, twice' is the same "
            f"run compared with itself: the noise. Bound: 1.25x of the run without. {machine()}.",
        ],
    )


if __name__ == "__main__":
    print(table().markdown())
