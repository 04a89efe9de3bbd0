"""Simulates the same pendulum with an XLA loop, in one program."""

import jax
import jax.numpy as jnp


@jax.jit
def simulate(angle: jax.Array, speed: jax.Array) -> tuple[jax.Array, jax.Array]:
    def step(_: int, state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        angle, speed = state
        speed = speed - 0.01 * jnp.sin(angle)
        return angle + 0.01 * speed, speed

    return jax.lax.fori_loop(0, 20000, step, (angle, speed))


angle, speed = simulate(jnp.ones(64), jnp.zeros(64))
jax.block_until_ready(angle)
