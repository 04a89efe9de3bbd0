"""Follows balloons in a field of wind, which comes from a file."""

import jax
import jax.numpy as jnp
import numpy as np

SIDE = 2000


@jax.jit
def moved(places: jax.Array, gusts: jax.Array, fields: dict[str, jax.Array]) -> jax.Array:
    at = jnp.clip(places, 0, SIDE - 1).astype(jnp.int32)
    wind = fields["wind"][at[:, 0], at[:, 1]]
    return places + 0.1 * wind + gusts.reshape(-1, 2)[: len(places)]


random = np.random.default_rng(0)
fields = {"wind": jnp.asarray(random.normal(size=(SIDE, SIDE, 2)), jnp.float32)}
gusts = np.empty((600_000, 2), np.float32)
places = jnp.full((1000, 2), SIDE / 2)
for _ in range(100):
    random.random(out=gusts, dtype=np.float32)  # one buffer, with new contents in each pass
    places = moved(places, gusts, fields)
    if float(places.max()) > SIDE:
        break
