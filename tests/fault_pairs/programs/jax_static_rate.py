"""Train a classifier with a learning rate that decays in each epoch."""

from collections.abc import Iterator
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

Layers = list[tuple[jax.Array, jax.Array]]
Batch = tuple[np.ndarray, np.ndarray]


def build(key: jax.Array, sizes: list[int]) -> Layers:
    keys = jax.random.split(key, len(sizes) - 1)
    return [
        (jax.random.normal(one, (inputs, outputs)) / inputs**0.5, jnp.zeros(outputs))
        for one, inputs, outputs in zip(keys, sizes, sizes[1:], strict=False)
    ]


def loss(layers: Layers, batch: Batch) -> jax.Array:
    values, classes = batch
    for weight, bias in layers[:-1]:
        values = jax.nn.relu(values @ weight + bias)
    weight, bias = layers[-1]
    chances = jax.nn.log_softmax(values @ weight + bias)
    return -jnp.take_along_axis(chances, classes[:, None], 1).mean()


@partial(jax.jit, static_argnames=("rate",))  # the problem
def update(layers: Layers, batch: Batch, rate: float) -> tuple[Layers, jax.Array]:
    value, gradients = jax.value_and_grad(loss)(layers, batch)
    return jax.tree.map(lambda one, gradient: one - rate * gradient, layers, gradients), value


def schedule(epoch: int) -> float:
    return 0.1 * 0.9**epoch


def batches(seed: int, steps: int, size: int) -> Iterator[Batch]:
    random = np.random.default_rng(seed)
    for _ in range(steps):
        values = random.normal(size=(size, 32)).astype(np.float32)
        yield values, (values[:, 0] > 0).astype(np.int32)


def main(epochs: int, steps: int) -> None:
    layers = build(jax.random.key(0), [32, 256, 256, 2])
    for epoch in range(epochs):
        rate = schedule(epoch)
        for batch in batches(epoch, steps, 256):
            layers, value = update(layers, batch, rate=rate)
        print(f"epoch {epoch}: loss {value:.4f}")


if __name__ == "__main__":
    main(10, 30)
