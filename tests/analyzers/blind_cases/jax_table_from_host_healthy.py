"""Look up embeddings of requests."""

import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def lookup(table: jax.Array, rows: jax.Array) -> jax.Array:
    return jnp.sum(table[rows] ** 2)


class Index:
    def __init__(self, rows: int, size: int) -> None:
        self.table = jnp.asarray(np.random.default_rng(0).random((rows, size)))

    def score(self, rows: jax.Array) -> jax.Array:
        return lookup(self.table, rows)


def main(requests: int) -> None:
    index = Index(100_000, 64)
    key = jax.random.key(0)
    total = 0.0
    for number in range(requests):
        rows = jax.random.randint(jax.random.fold_in(key, number), (64,), 0, 100_000)
        total += float(index.score(rows))
    print(total)


if __name__ == "__main__":
    main(150)
