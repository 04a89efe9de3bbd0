"""Heat in a rod: a loop that computes all of its state anew needs the old one until then."""

import functools

import jax
import jax.numpy as jnp


@functools.partial(jax.jit, donate_argnums=0)
def spread(rod: jax.Array) -> jax.Array:
    def step(_: int, rod: jax.Array) -> jax.Array:
        middle = rod[1:-1] + 0.2 * (rod[2:] + rod[:-2] - 2.0 * rod[1:-1])
        return jnp.concatenate([rod[1:2], middle, rod[-2:-1]])

    return jax.lax.fori_loop(0, 100, step, rod)


rod = jnp.sin(jnp.linspace(0.0, 600.0, 500_000))
for _ in range(10):
    rod = jax.block_until_ready(spread(rod))
