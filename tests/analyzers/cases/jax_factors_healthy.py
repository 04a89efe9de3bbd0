"""Follows heat in a plate with an implicit method that inverts its matrix once."""

import jax
import jax.numpy as jnp

POINTS = 300
row = jnp.arange(POINTS)
near = (jnp.abs(row[:, None] - row) == 1).astype(jnp.float32)
matrix = jnp.eye(POINTS) * 3.0 - near


@jax.jit
def step(inverse: jax.Array, heat: jax.Array) -> jax.Array:
    return inverse @ (heat + 0.1)


heat = jnp.sin(jnp.arange(float(POINTS)))
inverse = jnp.linalg.inv(matrix)
for _ in range(150):
    heat = step(inverse, heat)
heat.block_until_ready()
