"""Follows heat in a plate with an implicit method that solves with the same matrix in each step."""

import jax
import jax.numpy as jnp

POINTS = 300
row = jnp.arange(POINTS)
near = (jnp.abs(row[:, None] - row) == 1).astype(jnp.float32)
matrix = jnp.eye(POINTS) * 3.0 - near


@jax.jit
def step(matrix: jax.Array, heat: jax.Array) -> jax.Array:
    return jnp.linalg.solve(matrix, heat + 0.1)  # the problem


heat = jnp.sin(jnp.arange(float(POINTS)))
for _ in range(150):
    heat = step(matrix, heat)
heat.block_until_ready()
