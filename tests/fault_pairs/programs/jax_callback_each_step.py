"""Fit a curve with all steps in one compiled loop, and show how the loss went."""

import jax
import jax.numpy as jnp
import numpy as np

Weights = tuple[jax.Array, jax.Array]


class History:
    def __init__(self) -> None:
        self.losses: list[float] = []

    def add(self, losses: np.ndarray) -> None:
        self.losses.extend(np.asarray(losses).reshape(-1).tolist())

    def show(self, every: int) -> None:
        for step in range(0, len(self.losses), every):
            print(f"step {step}: loss {self.losses[step]:.5f}")


def loss(weights: Weights, inputs: jax.Array, targets: jax.Array) -> jax.Array:
    hidden = jnp.tanh(inputs[:, None] * weights[0])
    return jnp.mean((hidden @ weights[1] - targets) ** 2)


def fit(weights: Weights, inputs: jax.Array, targets: jax.Array, steps: int) -> History:
    history = History()

    def step(weights: Weights, _: None) -> tuple[Weights, None]:
        value, gradients = jax.value_and_grad(loss)(weights, inputs, targets)
        jax.debug.callback(history.add, value, ordered=True)  # the problem
        return jax.tree.map(lambda one, gradient: one - 0.01 * gradient, weights, gradients), None

    jax.jit(lambda start: jax.lax.scan(step, start, length=steps))(weights)
    jax.effects_barrier()
    return history


def main(steps: int) -> None:
    inputs = jnp.linspace(-3, 3, 256)
    first, second = jax.random.split(jax.random.key(0))
    weights = jax.random.normal(first, (64,)), jax.random.normal(second, (64,)) / 8
    history = fit(weights, inputs, jnp.sin(2 * inputs), steps)
    history.show(steps // 10)


if __name__ == "__main__":
    main(30_000)
