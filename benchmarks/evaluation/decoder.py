"""The JAX model of Llama and Gemma: RMS norm, rotary positions, grouped attention, a gated perceptron."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import layers


@dataclass(frozen=True)
class Shape:
    words: int
    width: int
    inner: int
    layers: int
    heads: int
    shared: int
    head: int
    theta: float = 500_000.0
    is_gemma: bool = False  # a scaled and tied embedding, GELU instead of SiLU


def rms_norm(p: layers.Parameters, x: jax.Array, name: str) -> jax.Array:
    wide = x.astype(jnp.float32)
    scale = jax.lax.rsqrt(jnp.square(wide).mean(-1, keepdims=True) + 1e-6)
    return (wide * scale).astype(x.dtype) * p(name, x.shape[-1])


def rotated(x: jax.Array, positions: jax.Array, theta: float) -> jax.Array:
    half = x.shape[-1] // 2
    angles = positions[:, None] * theta ** (-jnp.arange(half) / half)
    sine, cosine = (f(angles)[:, None].astype(x.dtype) for f in (jnp.sin, jnp.cos))
    left, right = x[..., :half], x[..., half:]
    return jnp.concatenate([left * cosine - right * sine, right * cosine + left * sine], axis=-1)


def _product(p: layers.Parameters, x: jax.Array, width: int, name: str) -> jax.Array:
    return x @ p(name, x.shape[-1], width, scale=x.shape[-1] ** -0.5)


def cached_logits(
    p: layers.Parameters, shape: Shape, ids: jax.Array, cache: Any = None, begin: Any = 0
) -> tuple[jax.Array, Any]:
    """Return the logits of each token and the cache with the keys and values of `ids` from `begin` on."""
    batch, tokens = ids.shape
    table = p("embedding", shape.words, shape.width, scale=0.02)
    x = table[ids] * (shape.width**0.5 if shape.is_gemma else 1)
    positions = begin + jnp.arange(tokens)
    known = tokens if cache is None else cache.shape[3]
    mask = jnp.arange(known) <= positions[:, None]
    activation = jax.nn.gelu if shape.is_gemma else jax.nn.silu
    for index in range(shape.layers):
        inside = p.at(f"layer{index}")
        normed = rms_norm(inside, x, "first")
        q, k, v = (
            _product(inside, normed, heads * shape.head, name).reshape(batch, tokens, heads, -1)
            for name, heads in (("q", shape.heads), ("k", shape.shared), ("v", shape.shared))
        )
        q, k = (rotated(each, positions, shape.theta) for each in (q, k))
        if cache is not None:
            new = jnp.stack([k, v])[None]
            cache = jax.lax.dynamic_update_slice(cache, new, (index, 0, 0, begin, 0, 0))
            k, v = cache[index]
        mixed = layers.attention(q, k, v, mask).reshape(batch, tokens, -1)
        x += _product(inside, mixed, shape.width, "out")
        normed = rms_norm(inside, x, "second")
        gated = activation(_product(inside, normed, shape.inner, "gate"))
        gated *= _product(inside, normed, shape.inner, "up")
        x += _product(inside, gated, shape.width, "down")
    last = table.T if shape.is_gemma else p("head", shape.width, shape.words, scale=0.02)
    return rms_norm(p, x, "last") @ last, cache


def logits(p: layers.Parameters, shape: Shape, ids: jax.Array) -> jax.Array:
    return cached_logits(p, shape, ids)[0]
