"""A training step of a transformer in JAX, for the table of overhead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

if TYPE_CHECKING:
    from collections.abc import Callable


def _normed(x: Any) -> Any:
    return (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5)


def _block(weights: dict[str, Any], x: Any) -> Any:
    query, key, value = jnp.split(_normed(x) @ weights["qkv"], 3, axis=-1)
    scores = jax.nn.softmax(query @ key.swapaxes(-1, -2) / query.shape[-1] ** 0.5)
    x = x + scores @ value @ weights["out"]
    return x + jax.nn.gelu(_normed(x) @ weights["up"]) @ weights["down"]


def _loss(model: list[dict[str, Any]], x: Any) -> Any:
    for weights in model:
        x = _block(weights, x)
    return jnp.mean(x**2)


@jax.jit  # type: ignore[untyped-decorator]
def train(model: list[dict[str, Any]], x: Any) -> Any:
    """Take a step of gradient descent."""
    gradients = jax.grad(_loss)(model, x)
    return jax.tree.map(lambda weight, gradient: weight - 1e-3 * gradient, model, gradients)


def transformer(*, is_small: bool) -> Callable[[], object]:
    """Make a step; it waits for the device."""
    blocks, width, batch, length = (2, 64, 2, 32) if is_small else (12, 768, 8, 1024)
    sizes = {"qkv": (1, 3), "out": (1, 1), "up": (1, 4), "down": (4, 1)}
    keys = iter(jax.random.split(jax.random.key(0), blocks * len(sizes) + 1))
    model = [
        {
            name: 0.02 * jax.random.normal(next(keys), (rows * width, columns * width))
            for name, (rows, columns) in sizes.items()
        }
        for _ in range(blocks)
    ]
    x = jax.random.normal(next(keys), (batch, length, width))

    def step() -> object:
        nonlocal model
        model = train(model, x)
        return jax.block_until_ready(model)

    return step
