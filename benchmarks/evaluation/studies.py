"""What the fixes of the paper's case studies save in the PyTorch workloads: a step before by a step after.

    python benchmarks/evaluation/studies.py

Each fix replaces an expression of a workload's file. Both versions take turns in one process, on one thread
of a CPU; a step's time is that of the thread, so that other programs matter little.
"""

from __future__ import annotations

import random
import statistics
import sys
import time
import types
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import conformer
import dlrm
import gnn
import torch
import transformer_big
import unet
from paired import Table, machine

STEPS = 15
LOSS = """each = nn.functional.cross_entropy(
            logits.transpose(-2, -1), target, reduction="none", label_smoothing=SMOOTHING
        )
        weights = torch.where(target > 0, 1.0, 0.0)
        each = torch.where(weights.to(torch.bool), each, 0.0)
        return each.sum() / weights.sum()"""
FUSED_LOSS = """return nn.functional.cross_entropy(
            logits.flatten(0, 1), target.flatten(), ignore_index=0, label_smoothing=SMOOTHING
        )"""
# What the paper gains on an A100, as far as its public summaries have it; the last is no study of it.
STUDIES = (
    (
        "DLRM-small: `index_select` instead of indexing",
        "1.66x",
        dlrm,
        dlrm.Size(2048, 20_000, 32, (128, 64), (256, 256, 128, 1)),
        {"self.table[items.flatten()]": "self.table.index_select(0, items.flatten())"},
    ),
    (
        "GNN: `index_select` instead of indexing",
        "1.07x",
        gnn,
        gnn.SIZES["tiny"],
        {
            "n[ends[0]], n[ends[1]], g[graph_of_edge]": "n.index_select(0, ends[0]), "
            "n.index_select(0, ends[1]), g.index_select(0, graph_of_edge)"
        },
    ),
    (
        "U-Net: `channels_last`",
        "1.28x",
        unet,
        unet.Size(2, 128, 16),
        {"model = UNet()": "model = UNet().to(memory_format=torch.channels_last)"},
    ),
    (
        "Transformer-Big: one operator for the loss",
        "1.06x",
        transformer_big,
        transformer_big.Size(8, 32, 8000, 128, 4, layers=2),
        {LOSS: FUSED_LOSS},
    ),
    (
        "Conformer: AdamW with `fused=True`, deepcontext's finding",
        "",
        conformer,
        conformer.SIZES["tiny"],
        {"trained(model, loss)": "trained(model, loss, fused=True)"},
    ),
)


def changed(module: types.ModuleType, fixes: dict[str, str]) -> types.ModuleType:
    """Return a module whose text has each of the fixes."""
    text = Path(str(module.__file__)).read_text("utf-8")
    for old, new in fixes.items():
        if old not in text:
            raise SystemExit(f"{module.__file__} has no '{old}'")
        text = text.replace(old, new)
    made = types.ModuleType(f"{module.__name__}_changed")
    sys.modules[made.__name__] = made  # where dataclasses look for it
    exec(compile(text, str(module.__file__), "exec"), vars(made))
    return made


def compared(before: Callable[[], object], after: Callable[[], object]) -> list[str]:
    times: tuple[list[int], list[int]] = ([], [])
    for turn in range(-2, STEPS):
        for step, kept in random.sample(list(zip((before, after), times, strict=True)), 2):
            begun = time.thread_time_ns()
            step()
            if turn >= 0:
                kept.append(time.thread_time_ns() - begun)
    ratios = [one / other for one, other in zip(*times, strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4)
    return [
        f"{statistics.median(times[0]) / 1e6:.1f} ms",
        f"{middle:.2f}x ({low:.2f} to {high:.2f})",
    ]


def table() -> Table:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    rows = []
    for name, paper, module, size, fixes in STUDIES:
        fixed = changed(module, fixes)
        rows.append([name, paper, *compared(module.torch_step(size), fixed.torch_step(size))])
    columns = ["study", "paper", "a step", "before by after"]
    note = f"Thread time, median of {STEPS} steps in turns (middle half). {machine()}."
    return Table("Case studies", columns, rows, [note])


if __name__ == "__main__":
    print(table().markdown())
