"""Serve recommendations: the best items for a few users at a time."""

from collections import Counter
from collections.abc import Iterator

import jax
import numpy as np


@jax.jit
def encode(layers: list[jax.Array], features: jax.Array) -> jax.Array:
    for layer in layers[:-1]:
        features = jax.nn.relu(features @ layer)
    return features @ layers[-1]


@jax.jit
def best(items: jax.Array, users: jax.Array) -> tuple[jax.Array, jax.Array]:
    scores = users @ items.T
    return scores.argmax(-1), scores.max(-1)


class Catalogue:
    """Vectors of all items, as the training job exported them."""

    def __init__(self, items: int, size: int) -> None:
        random = np.random.default_rng(0)
        self.vectors = random.normal(size=(items, size)).astype(np.float32)
        self.names = [f"item {number}" for number in range(items)]


class Recommender:
    def __init__(self, catalogue: Catalogue, layers: list[jax.Array]) -> None:
        self.names = catalogue.names
        self.items = catalogue.vectors
        self.layers = layers
        self.shown: Counter[str] = Counter()

    def recommend(self, features: np.ndarray) -> list[str]:
        places, _ = best(self.items, encode(self.layers, features))  # the problem
        names = [self.names[place] for place in np.asarray(places)]
        self.shown.update(names)
        return names


def requests(count: int, users: int, features: int) -> Iterator[np.ndarray]:
    random = np.random.default_rng(1)
    for _ in range(count):
        yield random.normal(size=(users, features)).astype(np.float32)


def main(count: int) -> None:
    keys = jax.random.split(jax.random.key(0), 3)
    shapes = [(32, 128), (128, 128), (128, 64)]
    layers = [
        jax.random.normal(key, shape) / shape[0] ** 0.5
        for key, shape in zip(keys, shapes, strict=True)
    ]
    recommender = Recommender(Catalogue(200_000, 64), layers)
    for features in requests(count, 4, 32):
        recommender.recommend(features)
    print(recommender.shown.most_common(3))


if __name__ == "__main__":
    main(120)
