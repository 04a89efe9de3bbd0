"""Advances many particles: those near a wall, a known part, need many small steps."""

import jax
import jax.numpy as jnp


def free(state: jax.Array) -> jax.Array:
    return state + 0.01 * jnp.array([state[1], -9.8])


def near_wall(state: jax.Array) -> jax.Array:
    def small(now: jax.Array, _: None) -> tuple[jax.Array, None]:
        push = jnp.exp(-50 * now[0]) * 400
        return now + 0.01 / 60 * jnp.array([now[1], push - 9.8]), None

    return jax.lax.scan(small, state, None, length=60)[0]


@jax.jit
def step(states: jax.Array) -> jax.Array:
    order = jnp.argsort(states[:, 0])
    near, far = states[order[:200]], states[order[200:]]
    return jnp.concatenate([jax.vmap(near_wall)(near), jax.vmap(free)(far)])


states = jax.random.uniform(jax.random.key(0), (4000, 2)) * 3
for _ in range(60):
    states = step(states)
states.block_until_ready()
