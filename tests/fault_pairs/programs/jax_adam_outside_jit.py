"""Train an autoencoder with an Adam of its own."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

Layers = list[dict[str, jax.Array]]


@dataclass
class Adam:
    rate: float
    decay: float = 0.9
    squared_decay: float = 0.99

    def init(self, layers: Layers) -> tuple[Layers, Layers]:
        return jax.tree.map(jnp.zeros_like, layers), jax.tree.map(jnp.zeros_like, layers)

    def update(
        self, gradients: Layers, moments: tuple[Layers, Layers], layers: Layers
    ) -> tuple[Layers, tuple[Layers, Layers]]:
        first = jax.tree.map(
            lambda old, new: self.decay * old + (1 - self.decay) * new, moments[0], gradients
        )
        second = jax.tree.map(
            lambda old, new: self.squared_decay * old + (1 - self.squared_decay) * new**2,
            moments[1],
            gradients,
        )
        layers = jax.tree.map(
            lambda one, mean, square: one - self.rate * mean / (jnp.sqrt(square) + 1e-6),
            layers,
            first,
            second,
        )
        return layers, (first, second)


def build(key: jax.Array, sizes: list[int]) -> Layers:
    keys = jax.random.split(key, len(sizes) - 1)
    return [
        {"weight": jax.random.normal(one, (rows, columns)) / rows**0.5, "bias": jnp.zeros(columns)}
        for one, rows, columns in zip(keys, sizes, sizes[1:], strict=False)
    ]


def loss(layers: Layers, batch: np.ndarray) -> jax.Array:
    values = batch
    for layer in layers:
        values = jnp.tanh(values @ layer["weight"] + layer["bias"])
    return jnp.mean((values - batch) ** 2)


class Trainer:
    def __init__(self, optimizer: Adam) -> None:
        self.optimizer = optimizer
        self.loss_and_gradient = jax.jit(jax.value_and_grad(loss))

    def step(
        self, layers: Layers, moments: tuple[Layers, Layers], batch: jax.Array
    ) -> tuple[Layers, tuple[Layers, Layers], jax.Array]:
        value, gradients = self.loss_and_gradient(layers, batch)
        layers, moments = self.optimizer.update(gradients, moments, layers)  # the problem
        return layers, moments, value


def main(steps: int) -> None:
    random = np.random.default_rng(0)
    batches = [jnp.tanh(random.normal(size=(128, 64))) for _ in range(10)]
    layers = build(jax.random.key(0), [64, 48, 24, 48, 64])
    trainer = Trainer(Adam(0.001))
    moments = trainer.optimizer.init(layers)
    for step in range(steps):
        layers, moments, value = trainer.step(layers, moments, batches[step % len(batches)])
        if step % 100 == 0:
            print(f"step {step}: loss {value:.4f}")


if __name__ == "__main__":
    main(400)
