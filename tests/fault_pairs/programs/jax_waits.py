"""Reads three values of each step's results one by one."""

import jax
import jax.numpy as jnp


@jax.jit
def train_step(weight: jax.Array, batch: jax.Array) -> tuple[jax.Array, dict[str, jax.Array]]:
    scores = jnp.tanh(batch @ weight)
    values = {"loss": scores.mean(), "norm": jnp.linalg.norm(weight), "most": scores.max()}
    return weight - 1e-3 * batch.T @ scores, values


weight, batch = jnp.ones((512, 512)), jnp.ones((512, 512))
for _ in range(40):
    weight, values = train_step(weight, batch)
    if any(float(value) > 1e9 for value in values.values()):  # the problem
        break
