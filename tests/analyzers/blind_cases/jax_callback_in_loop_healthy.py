"""Optimize with a penalty that is written in numpy."""

import jax
import jax.numpy as jnp


def penalty(values: jax.Array) -> jax.Array:
    return jnp.where(jnp.abs(values) > 1, jnp.sign(values), values)


def advance(values: jax.Array) -> jax.Array:
    return values - 0.01 * penalty(values) + 0.001 * jnp.cos(values)


@jax.jit
def run(values: jax.Array) -> jax.Array:
    return jax.lax.fori_loop(0, 100, lambda _, values: advance(values), values)


def main(rounds: int) -> None:
    values = jax.random.normal(jax.random.key(0), (256,))
    for _ in range(rounds):
        values = run(values)
    print(float(values.sum()))


if __name__ == "__main__":
    main(60)
