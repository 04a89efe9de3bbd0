"""Price a book of options: the few that may be exercised early need a tree."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm

LEVELS = 256


def closed_form(option: jax.Array) -> jax.Array:
    spot, strike, rate, spread, years, _ = option
    width = spread * jnp.sqrt(years)
    upper = (jnp.log(spot / strike) + (rate + spread**2 / 2) * years) / width
    paid = strike * jnp.exp(-rate * years)
    return paid * norm.cdf(width - upper) - spot * norm.cdf(-upper)


def tree(option: jax.Array) -> jax.Array:
    spot, strike, rate, spread, years, _ = option
    step = years / LEVELS
    up = jnp.exp(spread * jnp.sqrt(step))
    chance = (jnp.exp(rate * step) - 1 / up) / (up - 1 / up)
    discount = jnp.exp(-rate * step)
    places = jnp.arange(LEVELS + 1)

    def back(values: jax.Array, level: jax.Array) -> tuple[jax.Array, None]:
        held = discount * (chance * jnp.roll(values, -1) + (1 - chance) * values)
        price = spot * up ** (2.0 * places - level)
        return jnp.maximum(held, strike - price), None

    values = jnp.maximum(strike - spot * up ** (2.0 * places - LEVELS), 0.0)
    values, _ = jax.lax.scan(back, values, jnp.arange(LEVELS - 1, -1, -1.0))
    return values[0]


def price(option: jax.Array) -> jax.Array:
    return jax.lax.cond(option[5] > 0, tree, closed_form, option)


@jax.jit
def price_book(options: jax.Array) -> jax.Array:
    return jax.vmap(price)(options)  # the problem


def book(count: int, seed: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    spot = random.uniform(80, 120, count)
    strike = random.uniform(80, 120, count)
    rate = random.uniform(0.01, 0.05, count)
    spread = random.uniform(0.1, 0.4, count)
    years = random.uniform(0.2, 2, count)
    early = random.random(count) < 0.2
    return np.stack([spot, strike, rate, spread, years, early], 1).astype(np.float32)


def main(days: int, options: int) -> None:
    total = 0.0
    for day in range(days):
        prices = price_book(book(options, day))
        total += float(prices.mean())
    print(f"mean price {total / days:.3f}")


if __name__ == "__main__":
    main(days=14, options=2000)
