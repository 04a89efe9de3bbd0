"""Moves a cloud of particles for many steps, with a check left on that looks for infinite values."""

import jax
import jax.numpy as jnp

jax.config.update("jax_debug_infs", True)

Cloud = dict[str, jax.Array]


@jax.jit
def step(cloud: Cloud) -> Cloud:
    speed = 0.99 * cloud["speed"] - 0.01 * jnp.sin(cloud["place"])
    heat = cloud["heat"] + 1e-3 * (speed**2 - cloud["heat"])
    return {"place": cloud["place"] + 0.01 * speed, "speed": speed, "heat": heat}


keys = jax.random.split(jax.random.key(0), 3)
shape = (3000, 3)
cloud = {
    name: jax.random.normal(key, shape)
    for name, key in zip(("place", "speed", "heat"), keys, strict=True)
}
for _ in range(4000):
    cloud = step(cloud)  # the problem: each launch is checked
print(cloud["heat"].mean())
