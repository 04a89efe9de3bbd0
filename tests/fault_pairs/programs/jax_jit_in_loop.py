"""Fit a curve with gradient descent."""

import jax
import jax.numpy as jnp


def model(weights: jax.Array, inputs: jax.Array) -> jax.Array:
    powers = inputs[:, None] ** jnp.arange(len(weights))
    return powers @ weights


def loss(weights: jax.Array, inputs: jax.Array, targets: jax.Array) -> jax.Array:
    return jnp.mean((model(weights, inputs) - targets) ** 2)


class Fit:
    def __init__(self, size: int) -> None:
        self.weights = jnp.zeros(size)

    def step(self, inputs: jax.Array, targets: jax.Array) -> None:
        grad = jax.jit(jax.grad(lambda w: loss(w, inputs, targets)))(self.weights)  # the problem
        self.weights = self.weights - 0.1 * grad


def main(steps: int) -> None:
    key = jax.random.key(0)
    fit = Fit(6)
    for step in range(steps):
        inputs = jax.random.uniform(jax.random.fold_in(key, step), (256,))
        fit.step(inputs, jnp.sin(3 * inputs))
    print(fit.weights)


if __name__ == "__main__":
    main(25)
