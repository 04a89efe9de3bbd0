"""Score texts of different lengths with a small attention model."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

Weights = dict[str, jax.Array]


@dataclass
class Request:
    name: int
    tokens: np.ndarray


def build(key: jax.Array, vocabulary: int, size: int) -> Weights:
    first, second, third = jax.random.split(key, 3)
    return {
        "embedding": jax.random.normal(first, (vocabulary, size)),
        "mixing": jax.random.normal(second, (3, size, size)) / size**0.5,
        "head": jax.random.normal(third, (size,)) / size**0.5,
    }


@jax.jit
def score(weights: Weights, tokens: jax.Array, mask: jax.Array) -> jax.Array:
    values = weights["embedding"][tokens]
    query, key, value = jnp.einsum("ld,kde->kle", values, weights["mixing"])
    scores = query @ key.T / values.shape[-1] ** 0.5
    mixed = jax.nn.softmax(jnp.where(mask, scores, -jnp.inf)) @ value
    return jnp.sum((mixed @ weights["head"]) * mask) / jnp.sum(mask)


class Scorer:
    def __init__(self, weights: Weights) -> None:
        self.weights = weights

    def prepare(self, tokens: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        width = len(tokens)  # the problem
        padding = width - len(tokens)
        return np.pad(tokens, (0, padding)), np.arange(width) < len(tokens)

    def answer(self, request: Request) -> float:
        tokens, mask = self.prepare(request.tokens)
        return float(score(self.weights, tokens, mask))


def requests(count: int, vocabulary: int) -> list[Request]:
    random = np.random.default_rng(0)
    lengths = random.integers(20, 400, count)
    return [
        Request(name, random.integers(0, vocabulary, length, dtype=np.int32))
        for name, length in enumerate(lengths)
    ]


def main(count: int) -> None:
    scorer = Scorer(build(jax.random.key(0), 1000, 128))
    answers = {one.name: scorer.answer(one) for one in requests(count, 1000)}
    print(f"{len(answers)} answers, mean {np.mean(list(answers.values())):.4f}")


if __name__ == "__main__":
    main(16)
