"""The same particles: the loop keeps their mean and their spread."""

import jax
import jax.numpy as jnp

STEPS = 400


@jax.jit
def diffuse(places: jax.Array, key: jax.Array) -> tuple[jax.Array, jax.Array]:
    def step(places: jax.Array, key: jax.Array) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
        places = 0.99 * places + 0.1 * jnp.cos(places) * jax.random.normal(key)
        return places, (places.max(), places.mean())

    return jax.lax.scan(step, places, jax.random.split(key, STEPS))[1]


widest = []
for run in range(3):
    largest, mean = diffuse(jnp.ones(60_000), jax.random.key(run))
    spread = largest - mean
    widest.append(float(spread.max()))
print(widest)
