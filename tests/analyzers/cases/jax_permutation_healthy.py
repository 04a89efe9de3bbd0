"""Fits a curve to a sample of its points in each step, drawn by their numbers."""

import jax
import jax.numpy as jnp

times = jnp.linspace(0.0, 6.0, 100_000)
heights = jnp.sin(times)


def error(weights: jax.Array, at: jax.Array, height: jax.Array) -> jax.Array:
    powers = at[:, None] ** jnp.arange(8) / 6.0 ** jnp.arange(8)
    return jnp.mean((powers @ weights - height) ** 2)


@jax.jit
def step(weights: jax.Array, key: jax.Array) -> jax.Array:
    drawn = jax.random.randint(key, (512,), 0, len(times))
    return weights - 0.1 * jax.grad(error)(weights, times[drawn], heights[drawn])


weights = jnp.zeros(8)
for key in jax.random.split(jax.random.key(0), 50):
    weights = step(weights, key)
weights.block_until_ready()
