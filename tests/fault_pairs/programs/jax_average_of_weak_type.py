"""Fine-tune a small transformer for a few steps and show a running average of the loss."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

Weights = dict[str, Any]


class State(NamedTuple):
    weights: Weights
    speed: Weights
    average: jax.Array | float


def build(key: jax.Array, words: int, size: int, layers: int) -> Weights:
    def matrix(key: jax.Array, rows: int, columns: int) -> jax.Array:
        return jax.random.normal(key, (rows, columns)) / rows**0.5

    keys = iter(jax.random.split(key, 2 + 4 * layers))
    blocks = [
        {
            "mix": matrix(next(keys), size, 3 * size),
            "out": matrix(next(keys), size, size),
            "up": matrix(next(keys), size, 4 * size),
            "down": matrix(next(keys), 4 * size, size),
        }
        for _ in range(layers)
    ]
    return {
        "table": matrix(next(keys), words, size),
        "blocks": blocks,
        "head": matrix(next(keys), size, words),
    }


def normalize(states: jax.Array) -> jax.Array:
    spread = jnp.sqrt(jnp.var(states, -1, keepdims=True) + 1e-6)
    return (states - states.mean(-1, keepdims=True)) / spread


def predict(weights: Weights, tokens: jax.Array, heads: int = 4) -> jax.Array:
    states = weights["table"][tokens]
    hidden = jnp.tril(jnp.ones((tokens.shape[1], tokens.shape[1]), bool))
    for block in weights["blocks"]:
        parts = jnp.split(normalize(states) @ block["mix"], 3 * heads, axis=-1)
        queries, keys, values = (jnp.stack(parts[start::3], 1) for start in range(3))
        scores = queries @ keys.swapaxes(-1, -2) / queries.shape[-1] ** 0.5
        seen = jax.nn.softmax(jnp.where(hidden, scores, -1e9)) @ values
        states = states + jnp.concatenate(list(seen.swapaxes(0, 1)), -1) @ block["out"]
        states = states + jax.nn.gelu(normalize(states) @ block["up"]) @ block["down"]
    return normalize(states) @ weights["head"]


def loss_of(weights: Weights, tokens: jax.Array) -> jax.Array:
    chances = jax.nn.log_softmax(predict(weights, tokens[:, :-1]))
    return -jnp.take_along_axis(chances, tokens[:, 1:, None], -1).mean()


@jax.jit
def update(state: State, tokens: jax.Array) -> State:
    loss, slopes = jax.value_and_grad(loss_of)(state.weights, tokens)
    speed = jax.tree.map(lambda old, slope: 0.9 * old + slope, state.speed, slopes)
    weights = jax.tree.map(lambda old, change: old - 0.01 * change, state.weights, speed)
    return State(weights, speed, 0.95 * state.average + 0.05 * loss)


def main(steps: int) -> None:
    random = np.random.default_rng(0)
    weights = build(jax.random.key(0), 300, 64, 8)
    speed = jax.tree.map(jnp.zeros_like, weights)
    state = State(weights, speed, 0.0)  # the problem
    for step in range(steps):
        state = update(state, random.integers(0, 300, (4, 33)))
        if step % 10 == 9:
            print(step, f"{float(state.average):.4f}")


if __name__ == "__main__":
    main(40)
