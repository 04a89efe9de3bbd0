"""Keeps a number of each step, and the outputs of the last few."""

from collections import deque

import jax
import jax.numpy as jnp

import deepcontext


@jax.jit
def step(weight: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
    scores = jnp.tanh(x @ weight)
    return weight - 1e-3 * x.T @ scores, scores


weight, x = jnp.ones((256, 256)), jnp.ones((256, 256))
kept: list[float] = []
latest: deque[jax.Array] = deque(maxlen=4)
for _ in range(30):
    weight, scores = step(weight, x)
    kept.append(float(scores.mean()))
    latest.append(scores)
    deepcontext.step()
