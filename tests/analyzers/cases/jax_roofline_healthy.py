"""The same scores, with the scale of the inputs folded into the weights of the product."""

import jax
import jax.numpy as jnp


@jax.jit
def score(x: jax.Array, weight: jax.Array) -> jax.Array:
    return x @ (2.0 * weight) - weight.sum(0)


x, weight = jnp.ones((4096, 1024)), jnp.ones((1024, 16))
for _ in range(40):
    jax.block_until_ready(score(x, weight))
