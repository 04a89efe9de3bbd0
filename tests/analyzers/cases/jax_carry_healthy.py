"""The same loop, which reads its state before overwriting it, so that XLA works in place."""

import functools

import jax
import jax.numpy as jnp


def value(state: jax.Array) -> jax.Array:
    power = state
    for _ in range(12):  # enough arithmetic for the bytes read
        power = power * state + 1.0
    return power.sum()


def body(state: jax.Array, row: jax.Array) -> tuple[jax.Array, jax.Array]:
    after = state.at[row].set(state[row - 1] + 1.0)
    return after, value(after)


@functools.partial(jax.jit, donate_argnums=0)
def step(state: jax.Array) -> tuple[jax.Array, jax.Array]:
    return jax.lax.scan(body, state, jnp.arange(20))


state = jnp.ones((1000, 1000))
for _ in range(12):
    state, _ = jax.block_until_ready(step(state))
