"""Advances many particles: those near a wall need many small steps, and one condition is asked for each."""

import jax
import jax.numpy as jnp


def free(state: jax.Array) -> jax.Array:
    return state + 0.01 * jnp.array([state[1], -9.8])


def near_wall(state: jax.Array) -> jax.Array:
    def small(now: jax.Array, _: None) -> tuple[jax.Array, None]:
        push = jnp.exp(-50 * now[0]) * 400
        return now + 0.01 / 60 * jnp.array([now[1], push - 9.8]), None

    return jax.lax.scan(small, state, None, length=60)[0]


def advance(state: jax.Array) -> jax.Array:
    return jax.lax.cond(state[0] < 0.1, near_wall, free, state)  # the problem


step = jax.jit(jax.vmap(advance))
states = jax.random.uniform(jax.random.key(0), (4000, 2)) * 3
for _ in range(60):
    states = step(states)
states.block_until_ready()
