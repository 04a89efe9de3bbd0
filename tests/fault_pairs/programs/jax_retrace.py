"""Compiles the same function for every length it meets."""

import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def step(weight: jax.Array, x: jax.Array) -> jax.Array:
    return jnp.tanh(x @ weight).sum()


weight = np.ones((32, 32), np.float32)
for length in range(1, 25):
    step(weight, np.ones((length, 32), np.float32)).block_until_ready()  # the problem
