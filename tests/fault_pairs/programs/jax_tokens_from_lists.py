"""Train a classifier of messages on tokens that a tokenizer gave as lists."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np

Weights = dict[str, jax.Array]


class Messages:
    def __init__(self, messages: int, words: int, length: int) -> None:
        random = np.random.default_rng(0)
        self.length = length
        self.classes = random.integers(0, 4, messages)
        self.tokens = [
            random.integers(1 + kind, words, random.integers(length // 2, length)).tolist()
            for kind in self.classes * 50
        ]

    def padded(self, index: int) -> list[int]:
        tokens = self.tokens[index]
        return tokens + [0] * (self.length - len(tokens))

    def batches(self, size: int, seed: int) -> Iterator[tuple[jax.Array, jax.Array]]:
        order = np.random.default_rng(seed).permutation(len(self.tokens))
        for start in range(0, len(order) - size + 1, size):
            chosen = order[start : start + size]
            rows = [self.padded(index) for index in chosen]
            yield jnp.array(rows), jnp.array(self.classes[chosen])  # the problem


def build(key: jax.Array, words: int, size: int) -> Weights:
    table, inner, head = jax.random.split(key, 3)
    return {
        "table": jax.random.normal(table, (words, size)),
        "inner": jax.random.normal(inner, (size, size)) / size**0.5,
        "head": jax.random.normal(head, (size, 4)) / size**0.5,
    }


def loss_of(weights: Weights, tokens: jax.Array, classes: jax.Array) -> jax.Array:
    there = (tokens > 0)[..., None]
    mean = (weights["table"][tokens] * there).sum(1) / there.sum(1)
    chances = jax.nn.log_softmax(jnp.tanh(mean @ weights["inner"]) @ weights["head"])
    return -jnp.take_along_axis(chances, classes[:, None], -1).mean()


@jax.jit
def update(weights: Weights, tokens: jax.Array, classes: jax.Array) -> tuple[Weights, jax.Array]:
    loss, slopes = jax.value_and_grad(loss_of)(weights, tokens, classes)
    return jax.tree.map(lambda old, slope: old - 0.5 * slope, weights, slopes), loss


def main(epochs: int) -> None:
    messages = Messages(4000, 1000, 200)
    weights = build(jax.random.key(0), 1000, 24)
    for epoch in range(epochs):
        total = jnp.zeros(())
        for tokens, classes in messages.batches(100, epoch):
            weights, loss = update(weights, tokens, classes)
            total = total + loss
        print(epoch, f"{float(total):.3f}")


if __name__ == "__main__":
    main(3)
