"""Integrate a stiff system in a compiled function."""

import jax
import jax.numpy as jnp

STEPS = 200


def slope(state: jax.Array) -> jax.Array:
    mixed = jnp.roll(state, 1) * jnp.cos(state) - jnp.sin(jnp.roll(state, -1))
    return jnp.tanh(mixed) - 0.1 * state


def advance(state: jax.Array) -> jax.Array:
    first = slope(state)
    second = slope(state + 0.005 * first)
    return state + 0.01 * second


@jax.jit
def integrate(state: jax.Array) -> jax.Array:
    for _ in range(STEPS):
        state = advance(state)
    return state


def main(repeats: int) -> None:
    state = jax.random.normal(jax.random.key(0), (64,))
    for _ in range(repeats):
        state = integrate(state)  # the problem
    print(float(state.sum()))


if __name__ == "__main__":
    main(20)
