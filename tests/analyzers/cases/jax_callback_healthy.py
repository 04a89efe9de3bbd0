"""Returns the losses of the compiled loop, and hands them to Python after it."""

import jax
import jax.numpy as jnp

losses: list[float] = []


def step(weight: jax.Array, _: None) -> tuple[jax.Array, jax.Array]:
    return weight - 0.1 * (weight - 1.0), jnp.mean((weight - 1.0) ** 2)


@jax.jit
def fit(weight: jax.Array) -> tuple[jax.Array, jax.Array]:
    return jax.lax.scan(step, weight, length=1500)


for _ in range(3):
    _, values = fit(jnp.zeros(64))
    losses += values.tolist()
