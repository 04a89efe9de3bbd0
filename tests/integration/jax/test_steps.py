"""What ends a step in a JAX program."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from deepcontext.profiler.format.step_source import StepSource
from deepcontext.profiler.summaries.steps import step_rule
from deepcontext.profiler.summaries.verdict import Limit, verdicts


def loop(steps: int) -> None:
    @jax.jit
    def update(values: Any) -> Any:
        return jnp.tanh(values @ values)

    values = jnp.ones((400, 400))
    for _ in range(steps):
        values = update(values)
        values.block_until_ready()
        for _ in range(3):
            jnp.add(1, 2)


def test_the_program_with_most_time_ends_steps(record: Any) -> None:
    rule = step_rule(record(lambda: loop(200)).profile)
    assert rule is not None
    assert rule.source is StepSource.PROGRAM
    if rule.what == "jit(update)":  # on a busy machine a small call may take longer than all others
        # The first call compiles, and another program may lead at first.
        assert 100 < rule.count <= 199


def test_compiling_after_the_steps_is_said_with_its_line(record: Any) -> None:
    def work() -> None:
        loop(800)
        sizes = jax.jit(lambda values: jnp.tanh(values).sum())
        for size in range(1, 60):
            sizes(jnp.ones(size))

    said = {verdict.limit: verdict for verdict in verdicts(record(work).profile)}
    frame = said[Limit.END_COMPILES].frame
    assert frame is not None
    assert frame.line == work.__code__.co_firstlineno + 4


def test_times_inside_programs_are_divided_by_launches(record: Any) -> None:
    profile = record(lambda: loop(300)).profile
    windows = profile.windows
    assert sum(window.steps for window in windows) >= 100
    launches = "program_launch_count"
    whole = profile.within(windows)
    assert whole.query().total(launches) == profile.query().total(launches)
    parts = [profile.within([window]).query().total(launches) for window in windows]
    # Each part is rounded, at each of the few call paths.
    assert abs(sum(parts) - profile.query().total(launches)) <= 10 * len(windows)
    assert sum(part > 0 for part in parts) >= len(windows) // 2
