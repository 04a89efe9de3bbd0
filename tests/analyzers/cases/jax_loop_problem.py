"""Simulates a pendulum with a Python loop, one small program per step."""

import jax
import jax.numpy as jnp


@jax.jit
def step(angle: jax.Array, speed: jax.Array) -> tuple[jax.Array, jax.Array]:
    speed = speed - 0.01 * jnp.sin(angle)
    return angle + 0.01 * speed, speed


angle, speed = jnp.ones(64), jnp.zeros(64)
for _ in range(20000):
    angle, speed = step(angle, speed)  # the problem
jax.block_until_ready(angle)
