import argparse

import jax
import jax.numpy as jnp

Params = list[tuple[jax.Array, jax.Array]]


def configure(*, quick: bool) -> None:
    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_debug_nans", True)  # the problem
    jax.config.update("jax_default_matmul_precision", "default" if quick else "highest")


def initialise(key: jax.Array, sizes: list[int]) -> Params:
    keys = jax.random.split(key, len(sizes) - 1)
    return [
        (jax.random.normal(k, (m, n)) / jnp.sqrt(m), jnp.zeros(n))
        for k, m, n in zip(keys, sizes[:-1], sizes[1:], strict=True)
    ]


def predict(params: Params, x: jax.Array) -> jax.Array:
    for weight, bias in params[:-1]:
        x = jnp.tanh(x @ weight + bias)
    weight, bias = params[-1]
    return x @ weight + bias


def loss_fn(params: Params, x: jax.Array, y: jax.Array) -> jax.Array:
    return jnp.mean((predict(params, x) - y) ** 2)


@jax.jit
def step(params: Params, x: jax.Array, y: jax.Array) -> tuple[Params, jax.Array]:
    loss, grads = jax.value_and_grad(loss_fn)(params, x, y)
    return jax.tree.map(lambda p, g: p - 0.05 * g, params, grads), loss


def main(options: argparse.Namespace) -> None:
    configure(quick=True)
    key = jax.random.key(0)
    data = jax.random.normal(key, (options.batch, 8))
    target = jnp.sin(data.sum(1, keepdims=True))
    params = initialise(key, [8] + [32] * options.layers + [1])
    loss = jnp.zeros(())
    for _ in range(options.steps):
        params, loss = step(params, data, target)
    print(f"loss {loss.item():.4f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=6000)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--layers", type=int, default=8)
    main(parser.parse_args())
