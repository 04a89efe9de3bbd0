"""What the JAX models of the evaluation share: parameters by name, layers, attention, AdamW.

A model is one function of `Parameters` and its inputs, so that no array is declared twice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Model = Callable[..., jax.Array]


@dataclass(frozen=True)
class Parameters:
    """Arrays by name; while `is_new`, arrays that are asked for are noted with their shape and scale."""

    values: dict[str, Any] = field(default_factory=dict)
    prefix: str = ""
    is_new: bool = False
    dtype: Any = jnp.float32

    def at(self, name: str) -> Parameters:
        return Parameters(self.values, f"{self.prefix}{name}/", self.is_new, self.dtype)

    def __call__(self, name: str, *shape: int, scale: float = 0.0) -> jax.Array:
        """Return the array; at the start it is normal with the scale, or all ones without one."""
        if self.is_new:
            self.values[self.prefix + name] = (shape, scale)
            return jnp.ones(shape, self.dtype)
        return self.values[self.prefix + name]


def shapes(model: Model, *inputs: Any, dtype: Any = jnp.float32) -> dict[str, Any]:
    """Return shape and scale of each parameter of a model, without computing anything."""
    noted = Parameters(is_new=True, dtype=dtype)
    jax.eval_shape(lambda *arrays: model(noted, *arrays), *inputs)
    return noted.values


def initial(model: Model, *inputs: Any, dtype: Any = jnp.float32) -> dict[str, jax.Array]:
    """Return the parameters of a model; a short piece of noise is repeated, because billions take minutes."""
    noise = np.random.default_rng(0).standard_normal(1 << 16, dtype=np.float32)
    return {
        name: jnp.asarray(np.resize(noise, shape) * scale if scale else np.ones(shape), dtype)
        for name, (shape, scale) in shapes(model, *inputs, dtype=dtype).items()
    }


def trained(
    loss: Model, *batch: Any, dtype: Any = jnp.float32, rate: float = 1e-3
) -> Callable[[], jax.Array]:
    """Return a training step: the loss of a batch, its gradients, AdamW."""
    values = initial(loss, *batch, dtype=dtype)
    zeros = jax.tree.map(jnp.zeros_like, values)
    state = [values, zeros, jax.tree.map(jnp.copy, zeros), jnp.zeros((), jnp.int32)]

    def train_step(values, means, squares, count, batch):
        value, gradients = jax.value_and_grad(lambda v: loss(Parameters(v), *batch))(values)
        count += 1
        means = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, means, gradients)
        squares = jax.tree.map(lambda s, g: 0.999 * s + 0.001 * g * g, squares, gradients)
        correction = jnp.sqrt(1 - 0.999**count) / (1 - 0.9**count)

        def updated(value, mean, square):
            step = correction * mean / (jnp.sqrt(square) + 1e-8) + 0.01 * value
            return (value - rate * step).astype(value.dtype)

        return value, jax.tree.map(updated, values, means, squares), means, squares, count

    compiled = jax.jit(train_step, donate_argnums=(0, 1, 2, 3))

    def step() -> jax.Array:
        value, *state[:] = compiled(*state, batch)
        return value

    return step


def dense(p: Parameters, x: jax.Array, width: int, name: str = "dense") -> jax.Array:
    inside = p.at(name)
    return x @ inside("kernel", x.shape[-1], width, scale=x.shape[-1] ** -0.5) + inside(
        "bias", width
    )


def layer_norm(p: Parameters, x: jax.Array, name: str = "norm") -> jax.Array:
    mean = x.mean(-1, keepdims=True)
    variance = jnp.square(x - mean).mean(-1, keepdims=True)
    normed = (x - mean) * jax.lax.rsqrt(variance + 1e-5)
    return normed * p.at(name)("scale", x.shape[-1]) + p.at(name)("bias", x.shape[-1])


def batch_norm(p: Parameters, x: jax.Array, name: str = "norm") -> jax.Array:
    axes = tuple(range(x.ndim - 1))
    mean, variance = x.mean(axes), x.var(axes)
    normed = (x - mean) * jax.lax.rsqrt(variance + 1e-5)
    return normed * p.at(name)("scale", x.shape[-1]) + p.at(name)("bias", x.shape[-1])


def conv(
    p: Parameters, x: jax.Array, width: int, kernel: int, *, stride: int = 1, name: str = "conv"
) -> jax.Array:
    """Convolve a batch of images, channels last."""
    fan_in = kernel * kernel * x.shape[-1]
    weight = p.at(name)("kernel", kernel, kernel, x.shape[-1], width, scale=fan_in**-0.5)
    layout = ("NHWC", "HWIO", "NHWC")
    return jax.lax.conv_general_dilated(
        x, weight, (stride, stride), "SAME", dimension_numbers=layout
    )


def attention(q: jax.Array, k: jax.Array, v: jax.Array, mask: jax.Array | None = None) -> jax.Array:
    """Attend, with shapes (batch, tokens, heads, head width); several heads may share a key."""
    k, v = (jnp.repeat(each, q.shape[2] // k.shape[2], axis=2) for each in (k, v))
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) * q.shape[-1] ** -0.5
    if mask is not None:
        scores = jnp.where(mask, scores, -1e9)
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores, axis=-1), v)


def multi_head(
    p: Parameters,
    x: jax.Array,
    heads: int,
    mask: jax.Array | None = None,
    memory: jax.Array | None = None,
) -> jax.Array:
    """Attend from `x` to `memory`, or to itself without one."""
    source, width = x if memory is None else memory, x.shape[-1]

    def split(name: str, of: jax.Array) -> jax.Array:
        return dense(p, of, width, name).reshape(*of.shape[:2], heads, width // heads)

    mixed = attention(split("query", x), split("key", source), split("value", source), mask)
    return dense(p, mixed.reshape(x.shape), width, "out")


def feed_forward(p: Parameters, x: jax.Array, inner: int, activation=jax.nn.gelu) -> jax.Array:
    return dense(p, activation(dense(p, x, inner, "wide")), x.shape[-1], "narrow")


def causal(tokens: int) -> jax.Array:
    return jnp.tril(jnp.ones((tokens, tokens), bool))


def cross_entropy(logits: jax.Array, targets: jax.Array, smoothing: float = 0.0) -> jax.Array:
    logs = jax.nn.log_softmax(logits.astype(jnp.float32))
    hit = jnp.take_along_axis(logs, targets[..., None], axis=-1)[..., 0]
    return -((1 - smoothing) * hit + smoothing * logs.mean(-1)).mean()
