"""Fits a filter by gradient steps, which return the misfit; now and then other signals are tried."""

import functools

import jax
import jax.numpy as jnp


def respond(filters: dict[str, jax.Array], signals: jax.Array) -> jax.Array:
    hidden = jnp.tanh(signals @ filters["first"])
    return jnp.tanh(hidden @ filters["second"]) @ filters["last"]


def misfit(filters: dict[str, jax.Array], signals: jax.Array) -> jax.Array:
    return jnp.abs(respond(filters, signals) - signals).mean()


@jax.jit
def slopes_of(
    filters: dict[str, jax.Array], signals: jax.Array
) -> tuple[jax.Array, dict[str, jax.Array]]:
    return jax.value_and_grad(misfit)(filters, signals)


@functools.partial(jax.jit, donate_argnums=0)
def descend(filters: dict[str, jax.Array], slopes: dict[str, jax.Array]) -> dict[str, jax.Array]:
    return jax.tree.map(lambda old, slope: old - 0.1 * slope, filters, slopes)


def fit(filters: dict[str, jax.Array], signals: jax.Array, steps: int) -> list[float]:
    curve = []
    misfit_of = jax.jit(misfit)
    for step in range(steps):
        value, slopes = slopes_of(filters, signals)
        curve.append(float(value))
        filters = descend(filters, slopes)
        if step % 4 == 3:
            misfit_of(filters, jnp.full_like(signals, step))
    return curve


key = jax.random.key(0)
names = ("first", "second", "last")
print(
    fit(
        {name: jax.random.normal(key, (512, 512)) / 23 for name in names}, jnp.ones((512, 512)), 40
    )[-1]
)
