"""Fits six numbers of a spectrum's two peaks to 700 measurements, with a Jacobian in forward mode."""

import jax
import jax.numpy as jnp


def misfit(peaks: jax.Array, measured: jax.Array) -> jax.Array:
    place = jnp.linspace(0.0, 1.0, measured.size)
    heights, middles, widths = peaks.reshape(3, 2)
    shapes = jnp.exp(-(((place - middles[:, None]) / widths[:, None]) ** 2))
    return heights @ shapes - measured


@jax.jit
def step(peaks: jax.Array, measured: jax.Array) -> jax.Array:
    slopes = jax.jacfwd(misfit)(peaks, measured)
    normal = slopes.T @ slopes + 1e-3 * jnp.eye(peaks.size)
    return peaks - jnp.linalg.solve(normal, slopes.T @ misfit(peaks, measured))


truth = jnp.array([1.0, 0.6, 0.3, 0.7, 0.05, 0.1])
measured = misfit(truth, jnp.zeros(700))
peaks = truth * 1.02
for _ in range(250):
    peaks = step(peaks, measured)
peaks.block_until_ready()
