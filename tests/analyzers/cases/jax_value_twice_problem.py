"""Fits a filter by gradient steps; the misfit of each step is computed beside its gradient."""

import functools

import jax
import jax.numpy as jnp


def respond(filters: dict[str, jax.Array], signals: jax.Array) -> jax.Array:
    hidden = jnp.tanh(signals @ filters["first"])
    return jnp.tanh(hidden @ filters["second"]) @ filters["last"]


def misfit(filters: dict[str, jax.Array], signals: jax.Array) -> jax.Array:
    return jnp.abs(respond(filters, signals) - signals).mean()


@jax.jit
def slopes_of(filters: dict[str, jax.Array], signals: jax.Array) -> dict[str, jax.Array]:
    return jax.grad(misfit)(filters, signals)


@functools.partial(jax.jit, donate_argnums=0)
def descend(filters: dict[str, jax.Array], slopes: dict[str, jax.Array]) -> dict[str, jax.Array]:
    return jax.tree.map(lambda old, slope: old - 0.1 * slope, filters, slopes)


def fit(filters: dict[str, jax.Array], signals: jax.Array, steps: int) -> list[float]:
    curve = []
    misfit_of = jax.jit(misfit)
    for _ in range(steps):
        curve.append(float(misfit_of(filters, signals)))  # the problem
        filters = descend(filters, slopes_of(filters, signals))
    return curve


key = jax.random.key(0)
names = ("first", "second", "last")
print(
    fit(
        {name: jax.random.normal(key, (512, 512)) / 23 for name in names}, jnp.ones((512, 512)), 40
    )[-1]
)
