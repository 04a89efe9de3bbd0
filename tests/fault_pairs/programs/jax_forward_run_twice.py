"""Fit a network of sines to a picture until the error is small."""

import itertools
from collections import deque

import jax
import jax.numpy as jnp
import numpy as np

Weights = list[tuple[jax.Array, jax.Array]]


def build(key: jax.Array, sizes: list[int]) -> Weights:
    weights = []
    for before, after in itertools.pairwise(sizes):
        key, own = jax.random.split(key)
        limit = (6 / before) ** 0.5 / (1 if before == 2 else 10)
        matrix = jax.random.uniform(own, (before, after), minval=-limit, maxval=limit)
        weights.append((matrix, jnp.zeros(after)))
    return weights


def colours(weights: Weights, places: jax.Array) -> jax.Array:
    for matrix, shift in weights[:-1]:
        places = jnp.sin(10 * (places @ matrix + shift))
    matrix, shift = weights[-1]
    return places @ matrix + shift


def error_of(weights: Weights, places: jax.Array, wanted: jax.Array) -> jax.Array:
    return jnp.square(colours(weights, places) - wanted).mean()


class Picture:
    def __init__(self, side: int) -> None:
        steps = np.linspace(-1, 1, side, dtype=np.float32)
        self.places = np.stack(np.meshgrid(steps, steps), -1).reshape(-1, 2)
        waves = np.arange(1, 4, dtype=np.float32)
        self.colours = np.sin(3 * waves * self.places[:, :1]) * np.cos(waves * self.places[:, 1:])

    def sample(self, random: np.random.Generator, size: int) -> tuple[np.ndarray, np.ndarray]:
        chosen = random.integers(0, len(self.places), size)
        return self.places[chosen], self.colours[chosen]


class Fit:
    def __init__(self, weights: Weights, rate: float) -> None:
        self.weights = weights
        self.rate = rate
        self.error = jax.jit(error_of)
        self.slopes = jax.jit(jax.grad(error_of))
        self.latest: deque[float] = deque(maxlen=10)

    def step(self, places: np.ndarray, wanted: np.ndarray) -> None:
        slopes = self.slopes(self.weights, places, wanted)
        self.latest.append(float(self.error(self.weights, places, wanted)))  # the problem
        self.weights = jax.tree.map(
            lambda old, slope: old - self.rate * slope, self.weights, slopes
        )

    def done(self) -> bool:
        return max(self.latest) < 1e-4


def main(steps: int) -> None:
    random = np.random.default_rng(0)
    picture = Picture(256)
    fit = Fit(build(jax.random.key(0), [2, 128, 128, 128, 3]), 1e-3)
    for step in range(steps):
        fit.step(*picture.sample(random, 4096))
        if fit.done():
            break
        if step % 20 == 0:
            print(step, f"{fit.latest[-1]:.5f}")


if __name__ == "__main__":
    main(150)
