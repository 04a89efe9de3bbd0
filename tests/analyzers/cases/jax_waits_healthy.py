"""Reads three values of every tenth step."""

import jax
import jax.numpy as jnp


@jax.jit
def train_step(weight: jax.Array, batch: jax.Array) -> tuple[jax.Array, dict[str, jax.Array]]:
    scores = jnp.tanh(batch @ weight)
    values = {"loss": scores.mean(), "norm": jnp.linalg.norm(weight), "most": scores.max()}
    return weight - 1e-3 * batch.T @ scores, values


weight, batch = jnp.ones((512, 512)), jnp.ones((512, 512))
for step in range(40):
    weight, values = train_step(weight, batch)
    if step % 10 == 0 and any(float(value) > 1e9 for value in values.values()):
        break
