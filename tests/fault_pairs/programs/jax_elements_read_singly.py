"""Decode speech frames with CTC: a compiled acoustic model and a greedy search on the host."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np

LETTERS = "_abcdefghijklmnopqrstuvwxyz '"


def start(features: int, width: int, depth: int) -> dict[str, jax.Array]:
    keys = jax.random.split(jax.random.key(0), 3)
    scale = width**-0.5
    return {
        "inlet": jax.random.normal(keys[0], (features, width)) * features**-0.5,
        "layers": jax.random.normal(keys[1], (depth, 3, width, width)) * scale,
        "outlet": 3 * jax.random.normal(keys[2], (width, len(LETTERS))) * scale,
    }


@jax.jit
def best_letters(weights: dict[str, jax.Array], frames: jax.Array) -> tuple[jax.Array, jax.Array]:
    def layer(hidden: jax.Array, kernel: jax.Array) -> tuple[jax.Array, None]:
        before = jnp.pad(hidden, ((0, 0), (1, 0), (0, 0)))[:, :-1]
        after = jnp.pad(hidden, ((0, 0), (0, 1), (0, 0)))[:, 1:]
        mixed = before @ kernel[0] + hidden @ kernel[1] + after @ kernel[2]
        return hidden + 0.3 * jax.nn.relu(mixed), None

    hidden, _ = jax.lax.scan(layer, frames @ weights["inlet"], weights["layers"])
    logits = hidden @ weights["outlet"]
    return logits.argmax(-1), jax.nn.log_softmax(logits).max(-1)


def collapse(letters: jax.Array, scores: jax.Array) -> tuple[str, float]:
    text, total, last = "", 0.0, 0
    for place in range(len(letters)):
        letter = int(letters[place])  # the problem
        if letter != last and letter != 0:  # noqa: PLR1714  as a user wrote it
            text += LETTERS[letter]
            total += float(scores[place])
        last = letter
    return text, total / max(len(text), 1)


def recordings(batches: int, batch: int, frames: int, features: int) -> Iterator[np.ndarray]:
    random = np.random.default_rng(0)
    for _ in range(batches):
        slow = random.normal(size=(batch, frames // 4, features)).repeat(4, axis=1)
        yield (slow + 0.1 * random.normal(size=slow.shape)).astype(np.float32)


def main(batches: int) -> None:
    weights = start(80, 192, 5)
    letters_written, scores_of_texts = 0, []
    for frames in recordings(batches, batch=8, frames=400, features=80):
        letters, scores = best_letters(weights, frames)
        for row in range(len(letters)):
            text, score = collapse(letters[row], scores[row])
            letters_written += len(text)
            scores_of_texts.append(score)
    print(f"{letters_written} letters, mean score {np.mean(scores_of_texts):.4f}")


if __name__ == "__main__":
    main(batches=14)
