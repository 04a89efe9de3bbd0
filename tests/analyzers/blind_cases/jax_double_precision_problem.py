"""Fit a network to a table of measurements."""

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)


def forward(weights: list[jax.Array], batch: jax.Array) -> jax.Array:
    for weight in weights[:-1]:
        batch = jax.nn.relu(batch @ weight)
    return batch @ weights[-1]


@jax.jit
def step(weights: list[jax.Array], batch: jax.Array) -> list[jax.Array]:
    def loss(weights: list[jax.Array]) -> jax.Array:
        return jnp.mean((forward(weights, batch) - batch) ** 2)

    gradients = jax.grad(loss)(weights)
    return [weight - 0.01 * gradient for weight, gradient in zip(weights, gradients, strict=True)]


def load(rows: int, size: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((rows, size))


def train(steps: int, size: int) -> float:
    table = load(512, size)
    random = np.random.default_rng(1)
    weights = [jnp.asarray(random.standard_normal((size, size)) / size) for _ in range(3)]
    for _ in range(steps):
        weights = step(weights, jnp.asarray(table))  # the problem
    return float(weights[0].sum())


if __name__ == "__main__":
    print(train(60, 512))
