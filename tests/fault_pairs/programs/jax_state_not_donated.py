"""Train a wide network; the optimizer's state is larger than the weights."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

Weights = dict[str, jax.Array]


class State(NamedTuple):
    weights: Weights
    first: Weights
    second: Weights


def build(key: jax.Array, size: int, wide: int) -> State:
    up, down = jax.random.split(key)
    weights = {
        "up": jax.random.normal(up, (size, wide)) / size**0.5,
        "down": jax.random.normal(down, (wide, size)) / wide**0.5,
    }
    return State(
        weights, jax.tree.map(jnp.zeros_like, weights), jax.tree.map(jnp.zeros_like, weights)
    )


def loss(weights: Weights, batch: jax.Array) -> jax.Array:
    outputs = jax.nn.relu(batch @ weights["up"]) @ weights["down"]
    return jnp.mean((outputs - batch) ** 2)


def step(state: State, batch: jax.Array) -> tuple[State, jax.Array]:
    value, gradients = jax.value_and_grad(loss)(state.weights, batch)
    first = jax.tree.map(lambda old, new: 0.9 * old + 0.1 * new, state.first, gradients)
    second = jax.tree.map(lambda old, new: 0.99 * old + 0.01 * new**2, state.second, gradients)
    weights = jax.tree.map(
        lambda one, mean, square: one - 1e-4 * mean / (jnp.sqrt(square) + 1e-6),
        state.weights,
        first,
        second,
    )
    return State(weights, first, second), value


def main(steps: int) -> None:
    train_step = jax.jit(step)  # the problem
    state = build(jax.random.key(0), 1024, 16384)
    random = np.random.default_rng(0)
    for number in range(steps):
        batch = random.normal(size=(16, 1024)).astype(np.float32)
        state, value = train_step(state, batch)
        print(f"step {number}: loss {value:.4f}")


if __name__ == "__main__":
    main(6)
