"""The program that `instructions.py` runs under callgrind: loops of operators under each observer.

Prints one row a measured part. Each call of `getpgrp` ends one of callgrind's files: the even ones
are the measured parts, the odd ones what lies between.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist
from observers import OBSERVERS, deepcontext_session
from operator_event import at_depth, loop
from paired import quiet_descriptors
from torch.profiler import ProfilerActivity, profile

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    Observer = Callable[[], AbstractContextManager[object]]

ADDITIONS = 400
STEPS = 12
TOKENS = 2
COLLECTIVES = 100
# Without CPU samples, which go by the clock.
MODES: dict[str, Observer] = {
    "off": OBSERVERS["off"],
    "outside a recording": OBSERVERS["outside a recording"],
    "empty observer": OBSERVERS["empty observer"],
    "deepcontext operators only": OBSERVERS["deepcontext operators only"],
    "deepcontext operators only, no time line": lambda: deepcontext_session(
        memory=False, cpu_rate=0, timeline=False
    ),
    "deepcontext with memory": lambda: deepcontext_session(memory=True, cpu_rate=0),
    "torch.profiler": OBSERVERS["torch.profiler"],
    "torch.profiler with_stack": OBSERVERS["torch.profiler with_stack"],
}
LEFT, RIGHT = torch.ones(8, requires_grad=True), torch.ones(8)


def one_line() -> float:
    return loop(LEFT, RIGHT, ADDITIONS)


def four_lines() -> float:
    for _ in range(ADDITIONS // 8):
        total = LEFT * RIGHT + RIGHT
        total = total - RIGHT * LEFT
        total = total.relu() + total.neg()
        total.view(2, 4).sum().add(RIGHT.sum())
    return 0.0


def make_training() -> Callable[[], float]:
    """Return some steps of a small model: forward, backward and optimizer."""
    layers: list[torch.nn.Module] = []
    for _ in range(4):
        layers += [torch.nn.Linear(16, 16), torch.nn.LayerNorm(16), torch.nn.GELU()]
    model = torch.nn.Sequential(*layers)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, foreach=False)
    batch = torch.ones(4, 16)

    def train() -> float:
        for _ in range(STEPS):
            optimizer.zero_grad()
            model(batch).square().mean().backward()
            optimizer.step()
        return 0.0

    return train


def make_decoding() -> Callable[[], float]:
    """Return some tokens of a small GPT-2 of twelve blocks: many different operators, each one once."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "gpu"))
    import workloads

    model = workloads.Gpt2(is_small=True)
    model.blocks = torch.nn.ModuleList([workloads.Block(64, 4, 16) for _ in range(12)])
    model.eval().requires_grad_(requires_grad=False)
    token = torch.zeros(1, 1, dtype=torch.long)

    def decode() -> float:
        with torch.no_grad():
            for _ in range(TOKENS):
                token.copy_(model(token)[:, -1:].argmax(-1))
        return 0.0

    return decode


def collectives() -> float:
    values = torch.ones(256)
    for _ in range(COLLECTIVES):
        dist.all_reduce(values)
    return 0.0


def programs() -> dict[str, Callable[[], object]]:
    return {
        "one line, depth 11": lambda: at_depth(3, one_line),
        "one line, depth 41": lambda: at_depth(33, one_line),
        "one line, depth 100": lambda: at_depth(92, one_line),
        "four lines, depth 11": lambda: at_depth(3, four_lines),
        "training step": make_training(),
        "decoding": make_decoding(),
        "all_reduce": collectives,
    }


def count_events(run: Callable[[], object]) -> int:
    """Return how many operators and scopes PyTorch shows to an observer while `run` runs."""
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        run()
    return len(profiler.events())


def shut_windows() -> None:
    """Run an operator on another thread: no window of element types opens after that (decision 97).

    Windows go by the clock, so that at callgrind's speed most operators would be in one.
    """
    thread = threading.Thread(target=LEFT.detach)
    thread.start()
    thread.join()


def run_counted(run: Callable[[], object], observer: Observer) -> None:
    """Run twice, so that the second run, which is counted, has no new call path."""
    with observer():
        shut_windows()
        run()
        gc.collect()
        gc.disable()
        os.getpgrp()
        run()
        os.getpgrp()
        gc.enable()


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    rows = []
    with quiet_descriptors(), tempfile.TemporaryDirectory() as folder:
        store = f"file://{Path(folder) / 'store'}"
        dist.init_process_group("gloo", init_method=store, rank=0, world_size=1)
        for program, run in programs().items():
            events = count_events(run)
            for mode, observer in MODES.items():
                run_counted(run, observer)
                rows.append((program, mode, events))
        dist.destroy_process_group()
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
