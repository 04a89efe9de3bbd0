"""Embed sentences of different lengths."""

import random

import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def embed(table: jax.Array, mix: jax.Array, tokens: jax.Array) -> jax.Array:
    vectors = jnp.tanh(table[tokens] @ mix)
    weights = jax.nn.softmax(vectors.sum(-1) - 1e9 * (tokens == 0))
    return weights @ vectors


class Embedder:
    def __init__(self, size: int) -> None:
        first, second = jax.random.split(jax.random.key(0))
        self.table = jax.random.normal(first, (1000, size))
        self.mix = jax.random.normal(second, (size, size))

    def __call__(self, sentence: list[int]) -> jax.Array:
        tokens = np.zeros(128, int)
        tokens[: len(sentence)] = sentence
        return embed(self.table, self.mix, tokens)


def sentences(count: int) -> list[list[int]]:
    chooser = random.Random(0)
    return [
        [chooser.randrange(1, 1000) for _ in range(chooser.randint(20, 120))] for _ in range(count)
    ]


def main(count: int) -> None:
    embedder = Embedder(64)
    total = sum(float(embedder(sentence).sum()) for sentence in sentences(count))
    print(total)


if __name__ == "__main__":
    main(50)
