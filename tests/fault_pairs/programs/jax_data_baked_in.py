"""Fit a factor model to ratings with full-batch steps."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np


class Ratings:
    """Users, items and ratings, sorted by user."""

    def __init__(self, count: int, users: int, items: int) -> None:
        random = np.random.default_rng(0)
        self.users = jnp.asarray(np.sort(random.integers(0, users, count)))
        self.items = jnp.asarray(random.integers(0, items, count))
        taste = random.normal(size=(users, 4))
        kind = random.normal(size=(items, 4))
        score = (taste[self.users] * kind[self.items]).sum(1) + random.normal(size=count)
        self.scores = jnp.asarray(score.astype(np.float32))
        self.shape = (users, items)


def start(ratings: Ratings, size: int) -> dict[str, jax.Array]:
    first, second = jax.random.split(jax.random.key(0))
    users, items = ratings.shape
    return {
        "users": 0.1 * jax.random.normal(first, (users, size)),
        "items": 0.1 * jax.random.normal(second, (items, size)),
        "biases": jnp.zeros(items),
    }


def make_step(
    ratings: Ratings, rate: float
) -> Callable[..., tuple[dict[str, jax.Array], jax.Array]]:
    weights = 1 / (1 + jnp.bincount(ratings.users, length=ratings.shape[0]))

    def loss(factors: dict[str, jax.Array]) -> jax.Array:
        users, items, scores = ratings.users, ratings.items, ratings.scores  # the problem
        centred = scores - scores.mean()
        predicted = (factors["users"][users] * factors["items"][items]).sum(1)
        errors = centred - predicted - factors["biases"][items]
        fit = jnp.sum(weights[users] * errors**2) / ratings.shape[0]
        return fit + 1e-3 * sum(jnp.mean(value**2) for value in factors.values())

    @jax.jit
    def step(factors: dict[str, jax.Array]) -> tuple[dict[str, jax.Array], jax.Array]:
        value, slopes = jax.value_and_grad(loss)(factors)
        return jax.tree.map(lambda old, slope: old - rate * slope, factors, slopes), value

    return step


def fit(count: int, steps: int) -> float:
    ratings = Ratings(count, users=20_000, items=4_000)
    factors = start(ratings, 8)
    step = make_step(ratings, rate=2.0)
    value = jnp.zeros(())
    for _ in range(steps):
        factors, value = step(factors)
    return float(value)


if __name__ == "__main__":
    print(f"loss {fit(count=4_000_000, steps=4):.4f}")
