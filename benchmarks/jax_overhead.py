"""What profiling a JAX program costs: one small jitted call, and one training step.

Against `jax.profiler` with its Python tracer on and off. Modes alternate in one process, each in an
order drawn anew every round.

    python benchmarks/jax_overhead.py [--rounds N] [--step-seconds S]
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
from paired import Table, added, interleave, machine, ratio

import deepcontext
from deepcontext import _native

CALLS = 20_000
PAIR_CALLS = 500
TRACED_STEPS = 20
DEPTHS = (20, 60)
FIXED_FRAMES = 8


@contextlib.contextmanager
def off() -> Iterator[None]:
    yield


@contextlib.contextmanager
def profiled(*, exact: bool = False) -> Iterator[None]:
    deepcontext.start(jax_exact=exact)
    try:
        yield
    finally:
        deepcontext.stop()


@contextlib.contextmanager
def traced(*, python: int) -> Iterator[None]:
    folder = tempfile.mkdtemp()
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = python
    jax.profiler.start_trace(folder, profiler_options=options)
    try:
        yield
    finally:
        jax.profiler.stop_trace()
        shutil.rmtree(folder)


MODES: dict[str, Callable[[], contextlib.AbstractContextManager[None]]] = {
    "off": off,
    "deepcontext": profiled,
    "deepcontext --jax-exact": lambda: profiled(exact=True),
    "jax.profiler": lambda: traced(python=0),
    "jax.profiler, Python tracer": lambda: traced(python=1),
}


@jax.jit
def small(x: jax.Array) -> jax.Array:
    return x + 1


def at_depth(depth: int, run: Callable[[], float]) -> float:
    return run() if depth <= 0 else at_depth(depth - 1, run)


def call_loop(x: jax.Array, calls: int, function=small) -> float:
    """CPU ns of the calling thread per call: what the program's own thread pays."""
    function(x)
    begun = time.thread_time_ns()
    for _ in range(calls):
        function(x)
    return (time.thread_time_ns() - begun) / calls


def hooked_calls(rounds: int) -> Table:
    """Time two equal functions in one session, only one of them hooked: noise affects both."""
    x, rows = jnp.ones(4), []
    for depth in DEPTHS:
        hooked, alone = jax.jit(lambda x: x + 1), jax.jit(lambda x: x + 1)
        deepcontext.start(cpu_rate=0)
        try:
            call_loop(x, PAIR_CALLS)
            time.sleep(0.6)  # the sampler's first window
            _native.jax_unhook(alone)
            modes = {
                "hooked": lambda f=hooked: call_loop(x, PAIR_CALLS, f),
                "alone": lambda f=alone: call_loop(x, PAIR_CALLS, f),
            }
            figures: dict[str, list[float]] = {}

            def run(modes=modes, figures=figures) -> float:
                figures.update(interleave(modes, rounds * 60))
                return 0.0

            at_depth(depth - FIXED_FRAMES, run)
        finally:
            deepcontext.stop()
        extra, base = added(figures, "hooked", "alone"), statistics.median(figures["alone"])
        rows.append([str(depth), f"{base:.0f}", f"{extra:.0f}", f"{extra / base:.1%}"])
    return Table(
        "What the hook adds to one small jitted call",
        ["Python depth", "ns a call", "ns added", "of the call"],
        rows,
        [
            f"`jit(x + 1)` on 4 elements, one function with and one without the hook in one session, "
            f"{rounds * 60} interleaved loops of {PAIR_CALLS} calls, thread CPU time, median of the "
            f"differences; memory of arrays is recorded. Bound: at most 4 %. {machine()}."
        ],
    )


def small_calls(rounds: int) -> Table:
    x = jnp.ones(4)
    rows = []
    for depth in DEPTHS:
        modes = {}
        for name, make in MODES.items():
            calls = CALLS if "jax.profiler" not in name else CALLS // 10

            def run(make=make, calls=calls) -> float:
                with make():
                    at_depth(5, lambda: call_loop(x, calls // 10))  # the sampler's first window
                    time.sleep(0.5 if make is not off else 0)
                    return at_depth(depth - FIXED_FRAMES, lambda: call_loop(x, calls))  # noqa: B023  run at once

            modes[name] = run
        figures = interleave(modes, rounds)
        base = statistics.median(figures["off"])
        for name in MODES:
            if name != "off":
                extra = added(figures, name)
                rows.append([str(depth), name, f"{extra:.0f}", f"{extra / base:.1%}"])
        rows.append([str(depth), "off", f"{base:.0f}", ""])
    return Table(
        "Cost of one small jitted call",
        ["Python depth", "mode", "ns added", "of the call"],
        rows,
        [
            f"`jit(x + 1)` on 4 elements, thread CPU time, medians of {rounds} rounds. Bound: at most "
            f"4 % in the default mode. {machine()}."
        ],
    )


def make_step(width: int):
    def loss(params, x):
        for w in params:
            x = jnp.tanh(x @ w)
        return jnp.sum(x * x)

    @jax.jit
    def train_step(params, x):
        gradients = jax.grad(loss)(params, x)
        return [w - 1e-3 * g for w, g in zip(params, gradients, strict=True)]

    return train_step, [jnp.eye(width) for _ in range(6)], jnp.ones((256, width))


def training_steps(rounds: int, seconds: float) -> Table:
    train_step, params, x = make_step(512)
    jax.block_until_ready(train_step(params, x))

    def steps(count: int) -> float:
        state = params
        begun = time.process_time_ns()
        for _ in range(count):
            state = train_step(state, x)
            jax.block_until_ready(state)
        return (time.process_time_ns() - begun) / count

    begun = time.perf_counter()
    steps(5)
    count = max(20, int(seconds / ((time.perf_counter() - begun) / 5)))

    def mode(name: str) -> Callable[[], float]:
        # a trace keeps every event: a few hundred steps of it take minutes to write
        turns = min(count, TRACED_STEPS) if "jax.profiler" in name else count

        def run() -> float:
            with MODES[name]():
                return steps(turns)

        return run

    modes = {name: mode(name) for name in MODES} | {"off, again": mode("off")}
    figures = interleave(modes, rounds)
    rows = [
        [
            name,
            f"{statistics.median(figures[name]) / 1e6:.2f}",
            f"{ratio(figures, name) - 1:+.1%}",
            "{:+.1%} to {:+.1%}".format(*middle_half(figures, name)),
        ]
        for name in modes
    ]
    return Table(
        "Cost of one training step",
        ["mode", "CPU ms a step, all threads", "of the step", "middle half of the rounds"],
        rows,
        [
            f"6 layers of 512, {count} steps a round ({TRACED_STEPS} with jax.profiler, without the "
            f"time it takes to write its trace), {rounds} rounds. *off, again* is the noise. Bound: at "
            f"most 2 % in the default mode. {machine()}."
        ],
    )


def middle_half(figures: Mapping[str, Sequence[float]], name: str) -> tuple[float, float]:
    """First and third quartile over the rounds of what a mode adds, as a share of the step."""
    pairs = zip(figures[name], figures["off"], strict=True)
    low, _, high = statistics.quantiles([one / off - 1 for one, off in pairs], n=4)
    return low, high


def tables() -> list[Table]:
    return [hooked_calls(7), small_calls(7), training_steps(9, 6.0)]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--step-seconds", type=float, default=6.0)
    options = parser.parse_args()
    print(hooked_calls(options.rounds).markdown())
    print(small_calls(options.rounds).markdown())
    print(training_steps(options.rounds + 2, options.step_seconds).markdown())
