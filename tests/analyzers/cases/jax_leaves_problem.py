"""Weights of many experts in a list of arrays, each of which every launch has to check and wrap."""

import jax
import jax.numpy as jnp


@jax.jit
def step(weights: list[jax.Array], losses: jax.Array) -> list[jax.Array]:
    return [each - 0.01 * (each + losses) for each in weights]


weights = [jnp.full(4, 0.01 * place, jnp.float32) for place in range(80)]
losses = jnp.ones(4)
for _ in range(900):
    weights = step(weights, losses)  # the problem
jax.block_until_ready(weights)
