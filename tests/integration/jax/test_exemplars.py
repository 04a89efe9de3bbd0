"""Kept steps of a JAX program: what its threads did on the host."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

import deepcontext


def loop(steps: int) -> None:
    @jax.jit
    def update(values: Any) -> Any:
        return jnp.tanh(values @ values)

    values = jnp.ones((64, 64))
    for number in range(steps):
        values = update(values)
        values.block_until_ready()
        deepcontext.step(keep=number == steps // 2)


def test_a_kept_step_has_the_calls_of_programs_and_the_waits(record: Any) -> None:
    profile = record(lambda: loop(60)).profile
    (exemplar,) = (each for each in profile.exemplars if each.number == 31)
    lanes = {lane.name: lane for lane in profile.lanes(exemplar)}
    names = [profile.frame(node).name for node in lanes["MainThread"].node.tolist()]
    assert names == ["jit(update)", "jax: wait for the device"]
