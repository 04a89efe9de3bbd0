"""Train a convolutional network on small images."""

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)  # the problem

Layers = dict[str, jax.Array]


def batches(count: int, size: int) -> list[tuple[jax.Array, jax.Array]]:
    random = np.random.default_rng(0)
    classes = random.integers(0, 4, count)
    pixels = random.integers(0, 200, (count, 16, 16, 1))
    for pixel, place in zip(pixels, classes, strict=True):
        row, column = divmod(int(place), 2)
        pixel[8 * row : 8 * row + 8, 8 * column : 8 * column + 8] += 50
    parts = [slice(start, start + size) for start in range(0, count, size)]
    return [(jnp.asarray(pixels[part] / 255), jnp.asarray(classes[part])) for part in parts]


def build(key: jax.Array, channels: int) -> Layers:
    first, second, third = jax.random.split(key, 3)
    return {
        "first": jax.random.normal(first, (5, 5, 1, channels)) / 5,
        "second": jax.random.normal(second, (3, 3, channels, channels)) / (3 * channels**0.5),
        "head": jax.random.normal(third, (channels, 4)) / channels**0.5,
    }


def convolve(values: jax.Array, kernel: jax.Array) -> jax.Array:
    return jax.nn.relu(
        jax.lax.conv_general_dilated(
            values, kernel, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
    )


def loss(layers: Layers, pixels: jax.Array, classes: jax.Array) -> jax.Array:
    values = convolve(convolve(pixels, layers["first"]), layers["second"])
    chances = jax.nn.log_softmax(values.mean((1, 2)) @ layers["head"])
    return -jnp.take_along_axis(chances, classes[:, None], 1).mean()


@jax.jit
def update(layers: Layers, pixels: jax.Array, classes: jax.Array) -> tuple[Layers, jax.Array]:
    value, gradients = jax.value_and_grad(loss)(layers, pixels, classes)
    return jax.tree.map(lambda one, gradient: one - 0.2 * gradient, layers, gradients), value


def main(epochs: int) -> None:
    images = batches(512, 64)
    layers = build(jax.random.key(0), 64)
    for epoch in range(epochs):
        for pixels, classes in images:
            layers, value = update(layers, pixels, classes)
        print(f"epoch {epoch}: loss {value:.3f}")


if __name__ == "__main__":
    main(15)
