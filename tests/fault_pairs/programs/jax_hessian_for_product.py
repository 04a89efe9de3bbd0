"""Find the sharpest direction of a network's loss surface by power iteration, layer sizes small."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree


def start(sizes: list[int]) -> list[tuple[jax.Array, jax.Array]]:
    keys = jax.random.split(jax.random.key(0), len(sizes) - 1)
    return [
        (jax.random.normal(key, (inputs, outputs)) / inputs**0.5, jnp.zeros(outputs))
        for key, inputs, outputs in zip(keys, sizes[:-1], sizes[1:], strict=True)
    ]


def predict(layers: list[tuple[jax.Array, jax.Array]], inputs: jax.Array) -> jax.Array:
    for kernel, bias in layers[:-1]:
        inputs = jnp.tanh(inputs @ kernel + bias)
    kernel, bias = layers[-1]
    return (inputs @ kernel + bias)[:, 0]


LAYERS = start([12, 24, 16, 1])
FLAT, UNFLATTEN = ravel_pytree(LAYERS)


def loss(flat: jax.Array, inputs: jax.Array, targets: jax.Array) -> jax.Array:
    return jnp.mean((predict(UNFLATTEN(flat), inputs) - targets) ** 2)


@jax.jit
def train(flat: jax.Array, inputs: jax.Array, targets: jax.Array) -> jax.Array:
    def step(_: int, flat: jax.Array) -> jax.Array:
        return flat - 0.05 * jax.grad(loss)(flat, inputs, targets)

    return jax.lax.fori_loop(0, 20, step, flat)


@jax.jit
def curve(
    flat: jax.Array, inputs: jax.Array, targets: jax.Array, direction: jax.Array
) -> jax.Array:
    return jax.hessian(loss)(flat, inputs, targets) @ direction  # the problem


def sharpest(
    flat: jax.Array, inputs: jax.Array, targets: jax.Array, rounds: int
) -> tuple[jax.Array, jax.Array]:
    direction = jax.random.normal(jax.random.key(1), flat.shape)
    value = jnp.zeros(())
    for _ in range(rounds):
        direction = direction / jnp.linalg.norm(direction)
        product = curve(flat, inputs, targets, direction)
        value = direction @ product
        direction = product
    return value, direction


def data(count: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    inputs = random.normal(size=(count, 12)).astype(np.float32)
    return inputs, np.sin(inputs.sum(1)) + 0.1 * random.normal(size=count).astype(np.float32)


def main(epochs: int, rounds: int) -> None:
    inputs, targets = data(512)
    flat, values = FLAT, []
    for _ in range(epochs):
        flat = train(flat, inputs, targets)
        value, _ = sharpest(flat, inputs, targets, rounds)
        values.append(float(value))
    print(f"sharpness {values[0]:.3f} to {values[-1]:.3f}")


if __name__ == "__main__":
    main(epochs=4, rounds=8)
