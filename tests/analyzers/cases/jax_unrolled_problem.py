"""Simulates in a Python loop under jit, which becomes one program with all passes."""

import jax
import jax.numpy as jnp


def move(state: jax.Array, force: jax.Array) -> jax.Array:
    angle, speed = state
    speed = speed + 0.1 * (force - jnp.sin(angle) - 0.1 * speed)  # the problem
    return jnp.stack([angle + 0.1 * speed, speed])


def cost(forces: jax.Array) -> jax.Array:
    state = jnp.zeros((2, 1000))
    for force in forces:
        state = move(state, force)
    return jnp.mean((1.0 + jnp.cos(state[0])) ** 2)


@jax.jit
def improve(forces: jax.Array) -> jax.Array:
    return forces - jax.grad(cost)(forces)


forces = jnp.ones((24, 1000))
for _ in range(30):
    forces = improve(forces)  # the loop of the problem
forces.block_until_ready()
