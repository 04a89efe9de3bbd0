"""Hands each loss to Python from inside the compiled loop."""

import jax
import jax.numpy as jnp

losses: list[float] = []


def step(weight: jax.Array, _: None) -> tuple[jax.Array, None]:
    loss = jnp.mean((weight - 1.0) ** 2)
    jax.debug.callback(lambda value: losses.append(float(value)), loss)  # the problem
    return weight - 0.1 * (weight - 1.0), None


@jax.jit
def fit(weight: jax.Array) -> jax.Array:
    return jax.lax.scan(step, weight, length=1500)[0]


for _ in range(3):
    fit(jnp.zeros(64)).block_until_ready()  # the loop with the problem
