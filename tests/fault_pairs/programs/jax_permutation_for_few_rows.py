from functools import partial

import jax
import jax.numpy as jnp


def log_joint(weights: jax.Array, x: jax.Array, y: jax.Array, scale: float) -> jax.Array:
    logits = x @ weights
    likelihood = jnp.sum(y * jax.nn.log_sigmoid(logits) + (1 - y) * jax.nn.log_sigmoid(-logits))
    return scale * likelihood - 0.5 * jnp.sum(weights**2)


@partial(jax.jit, static_argnames="size")
def subsample(
    key: jax.Array, step: int, x: jax.Array, y: jax.Array, size: int
) -> tuple[jax.Array, jax.Array]:
    key = jax.random.fold_in(key, step)
    rows = jax.random.permutation(key, len(x))[:size]  # the problem
    return x[rows], y[rows]


@jax.jit
def langevin(
    key: jax.Array, step: int, weights: jax.Array, batch: tuple[jax.Array, jax.Array], scale: float
) -> jax.Array:
    x, y = batch
    gradient = jax.grad(log_joint)(weights, x, y, scale)
    noise = jax.random.normal(jax.random.fold_in(key, step), weights.shape)
    return weights + 0.5 * 1e-6 * gradient + 1e-3 * noise


def sample(key: jax.Array, x: jax.Array, y: jax.Array, steps: int, size: int) -> jax.Array:
    weights = jnp.zeros(x.shape[1])
    rows_key, noise_key = jax.random.split(key)
    kept = []
    for index in range(steps):
        batch = subsample(rows_key, index, x, y, size=size)
        weights = langevin(noise_key, index, weights, batch, len(x) / size)
        if index >= steps // 2 and index % 20 == 0:
            kept.append(weights)
    return jnp.stack(kept)


def main(rows: int = 60_000, features: int = 20, steps: int = 160) -> None:
    key, data_key, label_key = jax.random.split(jax.random.key(0), 3)
    x = jax.random.normal(data_key, (rows, features))
    truth = jnp.linspace(-1.0, 1.0, features)
    y = jax.random.bernoulli(label_key, jax.nn.sigmoid(x @ truth)).astype(jnp.float32)
    posterior = sample(key, x, y, steps, 256)
    print(f"error {jnp.abs(posterior.mean(0) - truth).mean().item():.4f}")


if __name__ == "__main__":
    main()
