"""Compare sampled times of JAX operations with the times of tracing all the time, one by one.

The same program runs in short sections of one process, each a session: sampled, traced all the time,
and traced all the time once more, in an order drawn anew every round. The machine's drift meets all
three; no sampling can be better than the difference between the two exact modes.

    python benchmarks/jax_sampled_times.py [--seconds S]
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
from paired import Table, interleave, machine

import deepcontext
from deepcontext.collectors.jax import sampling as jax_sampling
from deepcontext.profiler.summaries.jax import operations as jax_operations

SECONDS, ROUNDS = 60.0, 10
LARGE = 0.01  # of the device time: operations below are not compared
SHOWN = 8
PROGRAMS = {"12 layers of 160": (12, 160, 128), "4 layers of 64": (4, 64, 32)}
MODES = ("exact", "exact again", "sampled")


@dataclass
class Sums:
    """Device time and executions by operation, over all sections of one mode."""

    device_ns: Counter[str] = field(default_factory=Counter)
    executions: Counter[str] = field(default_factory=Counter)
    steps: int = 0
    runs: int = 0  # seen by the tracer

    def mean_ns(self, name: str) -> float:
        return self.device_ns[name] / max(self.executions[name], 1)


def make_step(layers: int, width: int, rows: int) -> Callable[[], None]:
    def loss(weights, x):
        for w in weights:
            x = jax.nn.gelu(x @ w)
        return jnp.sum(jax.nn.log_softmax(x)[:, 0] ** 2)

    @jax.jit
    def train_step(weights, x):
        gradients = jax.grad(loss)(weights, x)
        return [w - 1e-4 * g for w, g in zip(weights, gradients, strict=True)]

    weights, x = [jnp.eye(width) for _ in range(layers)], jnp.ones((rows, width))

    def step() -> None:
        nonlocal weights
        weights = jax.block_until_ready(train_step(weights, x))

    return step


def section(step: Callable[[], None], seconds: float, sums: Sums, *, exact: bool) -> float:
    """Run steps under a session and add what it says of each operation."""
    deepcontext.start(jax_exact=exact, cpu_rate=0)
    try:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            step()
            sums.steps += 1
    finally:
        profile = deepcontext.stop()
    for operation in jax_operations.operations(profile):
        if "train_step" in operation.program:
            sums.device_ns[operation.name] += operation.device_ns
            sums.executions[operation.name] += operation.executions
    (report,) = [c for c in profile.trust.collectors if c.name == "jax"]
    sums.runs += int(report.details["sampled_runs"])
    return 0.0


def measure(step: Callable[[], None], seconds: float) -> dict[str, Sums]:
    sums = {name: Sums() for name in MODES}
    sections = {
        name: lambda name=name: section(step, seconds / ROUNDS, sums[name], exact=name != "sampled")
        for name in MODES
    }
    # One run of a minute samples one second beyond its allowance; so do all its sections together.
    granted_s = jax_sampling._GRANT_S
    jax_sampling._GRANT_S = granted_s / ROUNDS
    try:
        interleave(sections, ROUNDS, warm_up=0)
    finally:
        jax_sampling._GRANT_S = granted_s
    return sums


def compare(label: str, sums: dict[str, Sums]) -> tuple[list[list[str]], list[list[str]]]:
    """Rows of the two tables for one program."""
    reference = {name: sums["exact"].mean_ns(name) for name in sums["exact"].device_ns}
    whole = sum(reference.values())
    large = sorted(
        (name for name in reference if reference[name] >= LARGE * whole),
        key=lambda name: -reference[name],
    )
    ratios = {
        mode: {name: sums[mode].mean_ns(name) / reference[name] for name in large}
        for mode in MODES[1:]
    }
    rows = []
    for mode in reversed(MODES[1:]):
        off = [abs(ratio - 1) for ratio in ratios[mode].values()]
        total = sum(sums[mode].mean_ns(name) for name in reference) / whole
        within = sum(one <= 0.1 for one in off)
        rows.append([
            label,
            f"{mode} / exact",
            f"{sums[mode].runs} of {sums[mode].steps}",
            f"{total - 1:+.1%}",
            f"{statistics.median(off):.1%}",
            f"{max(off):.1%}",
            f"{within} of {len(large)}",
        ])
    each = [
        [label, name, f"{reference[name] / whole:.1%}"]
        + [f"{ratios[mode][name] - 1:+.1%}" for mode in reversed(MODES[1:])]
        for name in large[:SHOWN]
    ]
    return rows, each


def tables(seconds: float = SECONDS) -> list[Table]:
    rows, each = [], []
    for label, size in PROGRAMS.items():
        step = make_step(*size)
        step()
        compared, largest = compare(label, measure(step, seconds))
        rows += compared
        each += largest
    columns = ["program", "compared", "runs traced", "all operations", "median", "worst"]
    return [
        Table(
            "Sampled times of JAX operations against tracing all the time",
            [*columns, "within 10 %"],
            rows,
            [
                f"A training step, {seconds:.0f} s of each mode in {ROUNDS} sections of one process, "
                "in a random order in each round. Median and worst: the error of the mean time of "
                f"an operation, for operations with at least {LARGE:.0%} of the device time. "
                "`exact again / exact` is the noise of the machine: times of operations contain "
                "waiting for a processor, and so depend on other work on the machine. Wanted: each "
                "operation within 10 %, or within that noise. "
                f"Load {os.getloadavg()[0]:.1f}. {machine()}."
            ],
        ),
        Table(
            "The largest of those operations",
            ["program", "operation", "of the time", "sampled / exact", "exact again / exact"],
            each,
        ),
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of each mode and program")
    for table in tables(parser.parse_args().seconds):
        print(table.markdown())
