"""Launches a program for every operation."""

import jax
import jax.numpy as jnp


def layers(x: jax.Array, weight: jax.Array) -> jax.Array:
    for _ in range(4):
        x = jnp.tanh(x * weight + 0.1)  # the problem
        x = x - x.mean()
        x = jnp.where(x > 0, x, 0.1 * x) / jnp.sqrt(jnp.square(x).mean() + 1e-6)
    return x


x, weight = jnp.ones((64, 64)), jnp.ones((64, 64))
for _ in range(500):
    jax.block_until_ready(layers(x, weight))
