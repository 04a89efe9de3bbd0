"""Fits a net to noisy samples of a curve, and follows the loss of the fit and of other samples."""

from typing import NamedTuple

import jax
import jax.numpy as jnp


class Samples(NamedTuple):
    inputs: jax.Array
    outputs: jax.Array


def predicted(weights: dict[str, jax.Array], inputs: jax.Array) -> jax.Array:
    hidden = jnp.tanh(inputs @ weights["first"])
    hidden = jnp.tanh(hidden @ weights["second"])
    return hidden @ weights["third"]


def loss(weights: dict[str, jax.Array], samples: Samples) -> jax.Array:
    return jnp.square(predicted(weights, samples.inputs) - samples.outputs).mean()


def drawn(seed: int) -> Samples:
    inputs = jax.random.normal(jax.random.key(seed), (4096, 256))
    return Samples(inputs, jnp.sin(inputs[:, :1]))


value = jax.jit(loss)
both = jax.jit(jax.value_and_grad(loss))


def step(weights: dict[str, jax.Array], own: Samples) -> dict[str, jax.Array]:
    error, slopes = both(weights, own)
    if not jnp.isfinite(error):
        raise FloatingPointError
    return {name: old - 0.1 * slopes[name] for name, old in weights.items()}


shapes = {"first": (256, 512), "second": (512, 256), "third": (256, 1)}
weights = {
    name: jax.random.normal(jax.random.key(seed), shape) / shape[0] ** 0.5
    for seed, (name, shape) in enumerate(shapes.items())
}
own, others = drawn(7), drawn(8)
for number in range(40):
    weights = step(weights, own)
    if number % 2 == 0:
        print(float(value(weights, others)))
