"""Search a controller for a pendulum by trying changed copies of its weights."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

Weights = dict[str, jax.Array]


def build(key: jax.Array, width: int) -> Weights:
    first, second = jax.random.split(key)
    return {
        "first": jax.random.normal(first, (3, width)) / 3**0.5,
        "second": jax.random.normal(second, (width, 1)) / width**0.5,
    }


@jax.jit
def act(weights: Weights, state: jax.Array) -> jax.Array:
    angle, speed = state
    seen = jnp.stack([jnp.cos(angle), jnp.sin(angle), speed / 8], -1)
    return 2 * jnp.tanh(jnp.tanh(seen @ weights["first"]) @ weights["second"])[:, 0]


@jax.jit
def move(state: jax.Array, force: jax.Array) -> tuple[jax.Array, jax.Array]:
    angle, speed = state
    wrapped = (angle + jnp.pi) % (2 * jnp.pi) - jnp.pi
    cost = wrapped**2 + 0.1 * speed**2 + 0.001 * force**2
    speed = jnp.clip(speed + 0.05 * (15 * jnp.sin(angle) + 3 * force), -8, 8)
    return jnp.stack([angle + 0.05 * speed, speed]), cost


def episode(weights: Weights, state: jax.Array, length: int) -> jax.Array:
    total = jnp.zeros(state.shape[1])
    for _ in range(length):
        state, cost = move(state, act(weights, state))  # the problem
        total = total + cost
    return total.mean()


@dataclass
class Search:
    weights: Weights
    spread: float
    tries: int

    def changed(self, key: jax.Array) -> Weights:
        keys = dict(zip(self.weights, jax.random.split(key, len(self.weights)), strict=True))
        return {
            name: old + self.spread * jax.random.normal(keys[name], old.shape)
            for name, old in self.weights.items()
        }

    def generation(self, key: jax.Array, state: jax.Array, length: int) -> float:
        tried = [self.changed(part) for part in jax.random.split(key, self.tries)]
        costs = [float(episode(weights, state, length)) for weights in tried]
        best = int(np.argmin(costs))
        self.weights = tried[best]
        return costs[best]


def main(generations: int) -> None:
    search = Search(build(jax.random.key(0), 16), 0.3, 12)
    start = jax.random.uniform(jax.random.key(1), (2, 64), minval=-1, maxval=1)
    for number in range(generations):
        cost = search.generation(jax.random.key(number + 2), start, 200)
        print(number, f"{cost:.2f}")


if __name__ == "__main__":
    main(25)
