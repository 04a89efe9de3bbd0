"""Evaluate a small recurrent model on windows of several signals."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np

Weights = dict[str, jax.Array]


def build(key: jax.Array, size: int) -> Weights:
    first, second, third = jax.random.split(key, 3)
    return {
        "input": jax.random.normal(first, (size,)),
        "state": jax.random.normal(second, (size, size)) / size**0.5,
        "output": jax.random.normal(third, (size,)) / size,
    }


def predict(weights: Weights, windows: np.ndarray) -> jax.Array:
    def cell(state: jax.Array, values: jax.Array) -> tuple[jax.Array, jax.Array]:
        state = jnp.tanh(values[:, None] * weights["input"] + state @ weights["state"])
        return state, state @ weights["output"]

    start = jnp.zeros((windows.shape[1], len(weights["input"])))
    _, outputs = jax.lax.scan(cell, start, windows)  # the problem
    return outputs


class Evaluation:
    def __init__(self, signals: np.ndarray, length: int) -> None:
        self.signals = signals
        self.length = length

    def windows(self) -> Iterator[np.ndarray]:
        for start in range(0, len(self.signals) - self.length, self.length):
            yield self.signals[start : start + self.length + 1]

    def error(self, weights: Weights) -> float:
        errors = []
        for windows in self.windows():
            outputs = np.asarray(predict(weights, windows[:-1]))
            errors.append(float(np.mean((outputs - windows[1:]) ** 2)))
        return sum(errors) / len(errors)


def main(windows: int, length: int) -> None:
    times = np.arange(windows * length + 1)[:, None]
    noise = np.random.default_rng(0).normal(0, 0.1, (len(times), 16))
    signals = np.sin(times / np.arange(10, 26)) + noise
    evaluation = Evaluation(signals.astype(np.float32), length)
    weights = build(jax.random.key(0), 64)
    print(f"error {evaluation.error(weights):.4f}")


if __name__ == "__main__":
    main(24, 2000)
