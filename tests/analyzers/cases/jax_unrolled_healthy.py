"""Simulates in a scan, which has its body once."""

import jax
import jax.numpy as jnp


def move(state: jax.Array, force: jax.Array) -> tuple[jax.Array, None]:
    angle, speed = state
    speed = speed + 0.1 * (force - jnp.sin(angle) - 0.1 * speed)
    return jnp.stack([angle + 0.1 * speed, speed]), None


def cost(forces: jax.Array) -> jax.Array:
    state, _ = jax.lax.scan(move, jnp.zeros((2, 1000)), forces)
    return jnp.mean((1.0 + jnp.cos(state[0])) ** 2)


@jax.jit
def improve(forces: jax.Array) -> jax.Array:
    return forces - jax.grad(cost)(forces)


forces = jnp.ones((24, 1000))
for _ in range(30):
    forces = improve(forces)
forces.block_until_ready()
