"""Optimize with a penalty that is written in numpy."""

import jax
import jax.numpy as jnp
import numpy as np


def penalty_in_numpy(values: np.ndarray) -> np.ndarray:
    values = np.asarray(values)
    return np.where(np.abs(values) > 1, np.sign(values), values).astype(np.float32)


def penalty(values: jax.Array) -> jax.Array:
    shape = jax.ShapeDtypeStruct(values.shape, values.dtype)
    return jax.pure_callback(penalty_in_numpy, shape, values)


def advance(values: jax.Array) -> jax.Array:
    return values - 0.01 * penalty(values) + 0.001 * jnp.cos(values)


@jax.jit
def run(values: jax.Array) -> jax.Array:
    return jax.lax.fori_loop(0, 100, lambda _, values: advance(values), values)


def main(rounds: int) -> None:
    values = jax.random.normal(jax.random.key(0), (256,))
    for _ in range(rounds):
        values = run(values)  # the problem
    print(float(values.sum()))


if __name__ == "__main__":
    main(60)
