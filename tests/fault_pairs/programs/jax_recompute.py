"""Computes every layer's forward again in the backward, with memory to spare."""

import jax
import jax.numpy as jnp


@jax.checkpoint
def layer(x: jax.Array, weight: jax.Array) -> tuple[jax.Array, None]:
    for _ in range(4):
        x = jnp.tanh(x @ weight)  # the problem
    return x, None


def loss(weights: jax.Array, x: jax.Array) -> jax.Array:
    x, _ = jax.lax.scan(layer, x, weights)
    return jnp.square(x).mean()


step = jax.jit(jax.grad(loss))
weights = jnp.stack([jnp.eye(512) * 0.9] * 4)
x = jnp.ones((128, 512))
for _ in range(12):
    jax.block_until_ready(step(weights, x))
