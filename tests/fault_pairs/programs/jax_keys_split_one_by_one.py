"""Estimate how likely a portfolio loses much, by many simulated years."""

import jax
import jax.numpy as jnp
import numpy as np


def market(assets: int) -> tuple[jax.Array, jax.Array]:
    """Mean and factor of the daily returns."""
    random = np.random.default_rng(0)
    factor = random.normal(size=(assets, assets)) * 0.01 / assets**0.5
    return jnp.full(assets, 2e-4), jnp.asarray(factor + 0.005 * np.eye(assets))


@jax.jit
def years(keys: jax.Array, mean: jax.Array, factor: jax.Array, shares: jax.Array) -> jax.Array:
    def year(key: jax.Array) -> jax.Array:
        noise = jax.random.normal(key, (52, len(mean)))
        returns = 5 * mean + 5**0.5 * noise @ factor.T
        value = jnp.cumprod(1 + returns @ shares)
        return value.min()

    return jax.vmap(year)(keys)


class Simulator:
    def __init__(self, assets: int, seed: int) -> None:
        self.mean, self.factor = market(assets)
        self.key = jax.random.key(seed)

    def draw_keys(self, count: int) -> jax.Array:
        keys = []
        for _ in range(count):
            self.key, key = jax.random.split(self.key)  # the problem
            keys.append(key)
        return jnp.stack(keys)

    def lowest(self, shares: jax.Array, count: int) -> np.ndarray:
        return np.asarray(years(self.draw_keys(count), self.mean, self.factor, shares))


def portfolios(count: int, assets: int) -> list[jax.Array]:
    random = np.random.default_rng(1)
    return [jnp.asarray(random.dirichlet(np.ones(assets))) for _ in range(count)]


def main(count: int, paths: int) -> None:
    simulator = Simulator(assets=40, seed=0)
    risks = []
    for shares in portfolios(count, 40):
        lowest = simulator.lowest(shares, paths)
        risks.append(float(np.mean(lowest < 0.97)))
    print(f"mean risk {np.mean(risks):.2f}, highest {max(risks):.2f}")


if __name__ == "__main__":
    main(count=15, paths=2000)
