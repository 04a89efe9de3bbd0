"""Waves on a string: each pass of the loop hands one state on as another, which XLA copies."""

import functools

import jax
import jax.numpy as jnp


@functools.partial(jax.jit, donate_argnums=(0, 1))
def wave(now: jax.Array, before: jax.Array) -> tuple[jax.Array, jax.Array]:
    def step(_: int, state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        now, before = state
        around = jnp.roll(now, 1) + jnp.roll(now, -1)
        return 0.25 * around + 1.5 * now - before, now  # the problem

    return jax.lax.fori_loop(0, 100, step, (now, before))


now, before = jnp.sin(jnp.linspace(0.0, 6.0, 500_000)), jnp.sin(jnp.linspace(0.0, 6.0, 500_000))
for _ in range(10):
    now, before = jax.block_until_ready(wave(now, before))
