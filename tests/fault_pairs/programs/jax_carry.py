"""A loop that reads its state after overwriting a part of it, so that XLA copies all of it."""

import jax
import jax.numpy as jnp


def value(state: jax.Array) -> jax.Array:
    power = state
    for _ in range(12):  # enough arithmetic for the bytes read
        power = power * state + 1.0
    return power.sum()


def body(state: jax.Array, row: jax.Array) -> tuple[jax.Array, jax.Array]:
    after = state.at[row].set(state[row - 1] + 1.0)  # the problem
    return after, value(state)


@jax.jit
def step(state: jax.Array) -> tuple[jax.Array, jax.Array]:
    return jax.lax.scan(body, state, jnp.arange(20))


state = jnp.ones((1000, 1000))
for _ in range(12):
    jax.block_until_ready(step(state))
