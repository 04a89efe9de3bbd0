"""Interleaved measurement: every mode once a round, medians of differences within a round."""

from __future__ import annotations

import os
import platform
import random
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Table:
    """Results of one benchmark; `notes` say what was run and what the design asks for."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()

    def markdown(self) -> str:
        lines = [f"## {self.title}", ""]
        lines += [f"| {' | '.join(self.columns)} |", f"|{'---|' * len(self.columns)}"]
        lines += [f"| {' | '.join(row)} |" for row in self.rows]
        lines += ["", *self.notes]
        return "\n".join(lines) + "\n"


def interleave(
    modes: Mapping[str, Callable[[], float]], rounds: int, warm_up: int = 1
) -> dict[str, list[float]]:
    """Run every mode once a round, in an order drawn anew each round; return its figures."""
    order = list(modes)
    figures: dict[str, list[float]] = {name: [] for name in modes}
    for turn in range(warm_up + rounds):
        random.shuffle(order)
        for name in order:
            figure = modes[name]()
            if turn >= warm_up:
                figures[name].append(figure)
    return figures


def added(figures: Mapping[str, Sequence[float]], mode: str, base: str = "off") -> float:
    """Median over the rounds of what `mode` adds to `base` in the same round."""
    return statistics.median(
        one - other for one, other in zip(figures[mode], figures[base], strict=True)
    )


def quartiles(
    figures: Mapping[str, Sequence[float]], mode: str, base: str = "off"
) -> tuple[float, float]:
    """Return between which values the middle half of the differences within a round lies."""
    lower, _, upper = statistics.quantiles(
        [one - other for one, other in zip(figures[mode], figures[base], strict=True)], n=4
    )
    return lower, upper


def lowest_added(figures: Mapping[str, Sequence[float]], mode: str, base: str = "off") -> float:
    """Return the difference of the lowest deciles: other programs only ever make a figure larger."""
    one, other = (statistics.quantiles(figures[name], n=10)[0] for name in (mode, base))
    return one - other


def ratio(figures: Mapping[str, Sequence[float]], mode: str, base: str = "off") -> float:
    """Median over the rounds of `mode` / `base` in the same round."""
    return statistics.median(
        one / other for one, other in zip(figures[mode], figures[base], strict=True)
    )


def machine() -> str:
    """One line that says where the figures come from."""
    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    versions = [f"Python {platform.python_version()}"]
    for name in ("torch", "jax", "numpy"):
        module = sys.modules.get(name)
        if module is not None:
            versions.append(f"{name} {module.__version__}")
    return f"{model}, {len(os.sched_getaffinity(0))} processors, {', '.join(versions)}"


@contextmanager
def quiet_descriptors():
    """Discard what libraries write to descriptor 2 (torch.profiler's USDT lines)."""
    saved = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(nowhere)
