"""Whitens features with weights of each feature, which are put on the diagonal of a matrix."""

import jax
import jax.numpy as jnp


def whitened(covariance: jax.Array, weights: jax.Array) -> jax.Array:
    scaling = jnp.diag(jnp.exp(weights))
    return scaling @ covariance @ scaling.T  # the problem


@jax.jit
def step(weights: jax.Array, covariance: jax.Array) -> jax.Array:
    def spread(now: jax.Array) -> jax.Array:
        return jnp.sum((whitened(covariance, now) - jnp.eye(len(now))) ** 2)

    return weights - 1e-4 * jax.grad(spread)(weights)


features = jax.random.normal(jax.random.key(0), (100, 600))
covariance = features.T @ features / len(features)
weights = jnp.zeros(600)
for _ in range(40):
    weights = step(weights, covariance)
weights.block_until_ready()
