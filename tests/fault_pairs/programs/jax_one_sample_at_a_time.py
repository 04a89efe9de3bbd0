"""Find the training samples on which a trained model still changes most."""

import jax
import jax.numpy as jnp
import numpy as np

Layers = list[jax.Array]


def build(key: jax.Array, sizes: list[int]) -> Layers:
    keys = jax.random.split(key, len(sizes) - 1)
    return [
        jax.random.normal(one, (rows, columns)) / rows**0.5
        for one, rows, columns in zip(keys, sizes, sizes[1:], strict=False)
    ]


def predict(layers: Layers, sample: jax.Array) -> jax.Array:
    for layer in layers[:-1]:
        sample = jnp.tanh(sample @ layer)
    return sample @ layers[-1]


def sample_loss(layers: Layers, sample: jax.Array, target: jax.Array) -> jax.Array:
    return jnp.sum((predict(layers, sample) - target) ** 2)


def gradient_norm(layers: Layers, sample: jax.Array, target: jax.Array) -> jax.Array:
    gradients = jax.grad(sample_loss)(layers, sample, target)
    return jnp.sqrt(sum(jnp.sum(gradient**2) for gradient in gradients))


@jax.jit
def update(layers: Layers, samples: jax.Array, targets: jax.Array) -> Layers:
    def loss(layers: Layers) -> jax.Array:
        return jax.vmap(sample_loss, (None, 0, 0))(layers, samples, targets).mean()

    return jax.tree.map(lambda one, grad: one - 0.01 * grad, layers, jax.grad(loss)(layers))


def norms(layers: Layers, samples: np.ndarray, targets: np.ndarray) -> np.ndarray:
    norm = jax.jit(gradient_norm)
    found = [norm(layers, *pair) for pair in zip(samples, targets, strict=True)]  # the problem
    return np.asarray(jax.device_get(found))


def main(count: int, steps: int) -> None:
    random = np.random.default_rng(0)
    samples = random.normal(size=(count, 32)).astype(np.float32)
    targets = np.sin(samples[:, :4] * 2)
    layers = build(jax.random.key(0), [32, 64, 64, 4])
    for step in range(steps):
        start = step * 256 % count
        layers = update(layers, samples[start : start + 256], targets[start : start + 256])
    found = norms(layers, samples, targets)
    print("hardest:", np.argsort(found)[-5:], "mean", round(float(found.mean()), 4))


if __name__ == "__main__":
    main(30_720, 200)
