"""Train a small network with a decaying rate."""

import jax
import jax.numpy as jnp

Weights = list[jax.Array]


def forward(weights: Weights, batch: jax.Array) -> jax.Array:
    for weight in weights[:-1]:
        batch = jnp.tanh(batch @ weight)
    return batch @ weights[-1]


def loss(weights: Weights, batch: jax.Array) -> jax.Array:
    return jnp.mean((forward(weights, batch) - batch) ** 2)


@jax.jit
def step(weights: Weights, batch: jax.Array, rate: float) -> Weights:
    gradients = jax.grad(loss)(weights, batch)
    return [weight - rate * gradient for weight, gradient in zip(weights, gradients, strict=True)]


def train(steps: int) -> float:
    key = jax.random.key(0)
    weights = [
        0.3 * jax.random.normal(jax.random.fold_in(key, layer), (16, 16)) for layer in range(4)
    ]
    batch = jax.random.normal(key, (64, 16))
    for number in range(steps):
        rate = 0.1 * 0.99**number
        weights = step(weights, batch, rate)
    return float(loss(weights, batch))


if __name__ == "__main__":
    print(train(20))
