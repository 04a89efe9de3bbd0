"""Count pairs of words and factorize the counts into word vectors."""

from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np


def sentences(count: int, length: int, vocabulary: int) -> np.ndarray:
    random = np.random.default_rng(0)
    return (random.beta(1, 4, (count, length)) * vocabulary).astype(np.int32)


def count_pairs(texts: np.ndarray, vocabulary: int) -> jax.Array:
    counts = jnp.zeros((vocabulary, vocabulary))
    for text in texts:
        for left, right in pairwise(text):
            counts = counts.at[left, right].add(1)  # the problem
    return counts


def loss(vectors: jax.Array, targets: jax.Array) -> jax.Array:
    return jnp.mean((vectors @ vectors.T - targets) ** 2)


@jax.jit
def update(vectors: jax.Array, targets: jax.Array) -> tuple[jax.Array, jax.Array]:
    value, gradient = jax.value_and_grad(loss)(vectors, targets)
    return vectors - 20.0 * gradient, value


def factorize(counts: jax.Array, size: int, steps: int) -> jax.Array:
    targets = jnp.log1p(counts + counts.T)
    vectors = 0.1 * jax.random.normal(jax.random.key(0), (len(counts), size))
    for step in range(steps):
        vectors, value = update(vectors, targets)
        if step % 100 == 0:
            print(f"step {step}: loss {value:.4f}")
    return vectors


def nearest(vectors: jax.Array, word: int) -> list[int]:
    scores = vectors @ vectors[word]
    return np.asarray(jax.lax.top_k(scores, 5)[1]).tolist()


def main(count: int) -> None:
    vocabulary = 400
    counts = count_pairs(sentences(count, 20, vocabulary), vocabulary)
    vectors = factorize(counts, 32, 300)
    print("nearest to 3:", nearest(vectors, 3))


if __name__ == "__main__":
    main(250)
