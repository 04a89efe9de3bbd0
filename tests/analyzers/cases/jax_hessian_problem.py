"""Solves with a Hessian by descent, and computes all of it for each product with a vector."""

import jax
import jax.numpy as jnp

FEATURES = jax.random.normal(jax.random.key(0), (800, 240))


def error(weights: jax.Array, labels: jax.Array) -> jax.Array:
    return jnp.logaddexp(0.0, -labels * (FEATURES @ weights)).mean() + 0.01 * weights @ weights


@jax.jit
def descend(
    weights: jax.Array, labels: jax.Array, wanted: jax.Array, solution: jax.Array
) -> jax.Array:
    product = jax.hessian(error)(weights, labels) @ solution  # the problem
    return solution - 0.5 * (product - wanted)


labels = jnp.where(FEATURES[:, 0] > 0.0, 1.0, -1.0)
weights, wanted = jnp.full(240, 0.01), jnp.ones(240)
solution = jnp.zeros(240)
for _ in range(150):
    solution = descend(weights, labels, wanted, solution)
jax.block_until_ready(solution)
