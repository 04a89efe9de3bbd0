"""Train a small decoder-only transformer on a synthetic copy task, with JAX alone.

    python examples/jax_transformer.py --steps 100

The model must repeat the first half of each sequence in its second half. The script imports no
profiler; to profile it, run

    deepcontext profile examples/jax_transformer.py
"""

from __future__ import annotations

import argparse
import functools
import time
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

Tree = dict[str, Any]


def dense_init(key: Array, rows: int, columns: int) -> Array:
    return jax.random.normal(key, (rows, columns)) / jnp.sqrt(rows)


def init_block(key: Array, width: int) -> Tree:
    keys = jax.random.split(key, 4)
    return {
        "norm1": jnp.ones(width),
        "qkv": dense_init(keys[0], width, 3 * width),
        "out": dense_init(keys[1], width, width),
        "norm2": jnp.ones(width),
        "up": dense_init(keys[2], width, 4 * width),
        "down": dense_init(keys[3], 4 * width, width),
    }


@functools.partial(jax.jit, static_argnames=("vocabulary", "width", "layers", "length"))
def init_params(key: Array, vocabulary: int, width: int, layers: int, length: int) -> Tree:
    keys = jax.random.split(key, layers + 2)
    return {
        "embedding": dense_init(keys[0], vocabulary, width),
        "position": 0.02 * jax.random.normal(keys[1], (length, width)),
        "blocks": [init_block(each, width) for each in keys[2:]],
        "norm": jnp.ones(width),
    }


def rms_norm(x: Array, scale: Array) -> Array:
    return x * lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6) * scale


def attention(block: Tree, x: Array, heads: int) -> Array:
    batch, length, width = x.shape
    split = (batch, length, heads, width // heads)
    query, key, value = (part.reshape(split) for part in jnp.split(x @ block["qkv"], 3, axis=-1))
    scores = jnp.einsum("bqhd,bkhd->bhqk", query, key) / jnp.sqrt(width // heads)
    causal = jnp.tril(jnp.ones((length, length), bool))
    weights = jax.nn.softmax(jnp.where(causal, scores, -1e9), axis=-1)
    mixed = jnp.einsum("bhqk,bkhd->bqhd", weights, value)
    return mixed.reshape(x.shape) @ block["out"]


def feed_forward(block: Tree, x: Array) -> Array:
    return jax.nn.gelu(x @ block["up"]) @ block["down"]


def transformer_block(block: Tree, x: Array, heads: int) -> Array:
    x = x + attention(block, rms_norm(x, block["norm1"]), heads)
    return x + feed_forward(block, rms_norm(x, block["norm2"]))


def forward(params: Tree, tokens: Array, heads: int = 4) -> Array:
    x = params["embedding"][tokens] + params["position"][: tokens.shape[1]]
    for block in params["blocks"]:
        x = transformer_block(block, x, heads)
    return rms_norm(x, params["norm"]) @ params["embedding"].T


def loss_of(params: Tree, tokens: Array) -> Array:
    logits = forward(params, tokens[:, :-1])
    targets = tokens[:, 1:]
    log_probabilities = jax.nn.log_softmax(logits)
    picked = jnp.take_along_axis(log_probabilities, targets[..., None], axis=-1)[..., 0]
    is_copy = jnp.arange(targets.shape[1]) >= targets.shape[1] // 2
    return -jnp.sum(picked * is_copy) / (jnp.sum(is_copy) * tokens.shape[0])


def adam_update(
    params: Tree, gradients: Tree, state: Tree, rate: float = 1e-3
) -> tuple[Tree, Tree]:
    step = state["step"] + 1
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state["first"], gradients)
    second = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, state["second"], gradients)

    def moved(parameter: Array, m: Array, v: Array) -> Array:
        corrected = m / (1 - 0.9**step)
        spread = jnp.sqrt(v / (1 - 0.99**step)) + 1e-8
        return parameter - rate * corrected / spread

    updated = jax.tree.map(moved, params, first, second)
    return updated, {"step": step, "first": first, "second": second}


@functools.partial(jax.jit, donate_argnums=(0, 1))
def train_step(params: Tree, state: Tree, tokens: Array) -> tuple[Tree, Tree, Array]:
    loss, gradients = jax.value_and_grad(loss_of)(params, tokens)
    params, state = adam_update(params, gradients, state)
    return params, state, loss


@jax.jit
def evaluate(params: Tree, tokens: Array) -> Array:
    return loss_of(params, tokens)


def make_batch(key: Array, batch: int, length: int, vocabulary: int) -> Array:
    half = jax.random.randint(key, (batch, (length + 1) // 2), 2, vocabulary)
    return jnp.concatenate([half, half], axis=1)[:, : length + 1]


def train(options: argparse.Namespace) -> float:
    key = jax.random.key(options.seed)
    params = init_params(key, options.vocabulary, options.width, options.layers, options.length)
    zeros = jax.tree.map(jnp.zeros_like, params)
    state = {
        "step": jnp.zeros((), jnp.int32),
        "first": zeros,
        "second": jax.tree.map(jnp.copy, zeros),
    }
    begun = time.perf_counter()
    for step in range(options.steps):
        key, batch_key = jax.random.split(key)
        tokens = make_batch(batch_key, options.batch, options.length, options.vocabulary)
        params, state, loss = train_step(params, state, tokens)
        if (step + 1) % options.report_every == 0:
            validation = evaluate(params, tokens)
            print(f"step {step + 1:4d}  loss {float(loss):.4f}  after {float(validation):.4f}")
    jax.block_until_ready(params)
    return time.perf_counter() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--vocabulary", type=int, default=256)
    parser.add_argument("--report-every", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    seconds = train(options)
    print(f"{options.steps} steps in {seconds:.1f} s")


if __name__ == "__main__":
    main()
