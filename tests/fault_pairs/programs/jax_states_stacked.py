"""Simulate heat in plates and report how their mean and highest temperature end."""

import jax
import jax.numpy as jnp
import numpy as np


def laplace(plates: jax.Array) -> jax.Array:
    padded = jnp.pad(plates, ((0, 0), (1, 1), (1, 1)), mode="edge")
    around = padded[:, 2:, 1:-1] + padded[:, :-2, 1:-1] + padded[:, 1:-1, 2:] + padded[:, 1:-1, :-2]
    return around - 4 * plates


def advance(
    plates: jax.Array, source: jax.Array, conduction: jax.Array, step: jax.Array
) -> jax.Array:
    heating = source * jnp.sin(0.05 * step)
    cooling = 1e-4 * (plates - 20.0)
    return plates + conduction * laplace(plates) + heating - cooling


@jax.jit
def simulate(
    plates: jax.Array, source: jax.Array, conduction: jax.Array, steps: jax.Array
) -> tuple[jax.Array, jax.Array]:
    def body(plates: jax.Array, step: jax.Array) -> tuple[jax.Array, jax.Array]:
        plates = advance(plates, source, conduction, step)
        return plates, plates  # the problem

    last, history = jax.lax.scan(body, plates, steps)
    return last, history


def summary(history: jax.Array) -> np.ndarray:
    means = history.mean((1, 2, 3))
    highest = history.max((1, 2, 3))
    return np.stack([means, highest], 1)


def plates(count: int, size: int, seed: int) -> tuple[jax.Array, jax.Array, jax.Array]:
    first, second, third = jax.random.split(jax.random.key(seed), 3)
    start = 20 + 60 * jax.random.uniform(first, (count, size, size))
    spots = jax.random.uniform(second, (count, size, size)) > 0.999
    conduction = jax.random.uniform(third, (count, 1, 1), minval=0.05, maxval=0.2)
    return start, 5.0 * spots, conduction


def main(runs: int, steps: int) -> None:
    curves = []
    for run in range(runs):
        start, source, conduction = plates(count=8, size=128, seed=run)
        last, history = simulate(start, source, conduction, jnp.arange(float(steps)))
        curves.append(summary(history))
        print(f"run {run}: {float(last.mean()):.3f} degrees at the end")
    ends = np.stack(curves)[:, -1]
    print(f"mean {ends[:, 0].mean():.3f}, highest {ends[:, 1].max():.3f}")


if __name__ == "__main__":
    main(runs=6, steps=1200)
