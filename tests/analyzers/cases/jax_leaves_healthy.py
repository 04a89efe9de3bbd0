"""The same weights of many experts in one array."""

import jax
import jax.numpy as jnp


@jax.jit
def step(weights: jax.Array, losses: jax.Array) -> jax.Array:
    return weights - 0.01 * (weights + losses)


weights = jnp.repeat(0.01 * jnp.arange(80.0)[:, None], 4, axis=1)
losses = jnp.ones(4)
for _ in range(900):
    weights = step(weights, losses)
jax.block_until_ready(weights)
