"""Conformer on LibriSpeech: attention and convolution between two half feed-forwards, a CTC loss."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Size:
    batch: int
    frames: int
    width: int
    heads: int
    words: int
    letters: int
    layers: int = 4
    kernel: int = 5


BINS = 80
SIZES = {"tiny": Size(4, 160, 64, 4, 64, 20, layers=2), "paper": Size(32, 1600, 512, 8, 1024, 128)}


def torch_step(size: Size):  # noqa: C901  counts the classes of the model
    import torch
    from torch import nn
    from training import trained

    def feed_forward() -> nn.Sequential:
        wide = nn.Linear(size.width, 4 * size.width)
        narrow = nn.Linear(4 * size.width, size.width)
        return nn.Sequential(nn.LayerNorm(size.width), wide, nn.SiLU(), narrow)

    class Convolution(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.LayerNorm(size.width)
            self.gated = nn.Linear(size.width, 2 * size.width)
            padding = size.kernel // 2
            self.depth = nn.Conv1d(
                size.width, size.width, size.kernel, padding=padding, groups=size.width
            )
            self.batch_norm = nn.BatchNorm1d(size.width)
            self.out = nn.Linear(size.width, size.width)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            gated = nn.functional.glu(self.gated(self.norm(x)))
            mixed = self.batch_norm(self.depth(gated.transpose(1, 2)))
            return self.out(nn.functional.silu(mixed).transpose(1, 2))

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = feed_forward(), feed_forward()
            self.norm = nn.LayerNorm(size.width)
            self.attention = nn.MultiheadAttention(size.width, size.heads, batch_first=True)
            self.convolution = Convolution()
            self.last = nn.LayerNorm(size.width)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = x + 0.5 * self.first(x)
            normed = self.norm(x)
            x = x + self.attention(normed, normed, normed, need_weights=False)[0]
            x = x + self.convolution(x)
            return self.last(x + 0.5 * self.second(x))

    class Conformer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Conv2d(1, size.width, 3, 2, padding=1)
            self.second = nn.Conv2d(size.width, size.width, 3, 2, padding=1)
            self.flat = nn.Linear(size.width * BINS // 4, size.width)
            self.blocks = nn.Sequential(*(Block() for _ in range(size.layers)))
            self.head = nn.Linear(size.width, size.words)

        def forward(self, spectrum: torch.Tensor) -> torch.Tensor:
            x = self.first(spectrum[:, None]).relu()
            x = self.second(x).relu()
            x = self.flat(x.transpose(1, 2).flatten(2))
            return self.head(self.blocks(x))

    model = Conformer()
    spectrum = torch.randn(size.batch, size.frames, BINS)
    letters = torch.randint(1, size.words, (size.batch, size.letters))
    lengths = torch.full((size.batch,), size.frames // 4, device="cpu")
    counts = torch.full((size.batch,), size.letters, device="cpu")

    def loss() -> torch.Tensor:
        logs = model(spectrum).log_softmax(-1).transpose(0, 1)
        return nn.functional.ctc_loss(logs, letters, lengths, counts)

    return trained(model, loss)


def jax_step(size: Size):
    import jax
    import jax.numpy as jnp
    import layers
    import numpy as np

    def half(p, x):
        return 0.5 * layers.feed_forward(p, layers.layer_norm(p, x), 4 * size.width, jax.nn.silu)

    def convolution(p, x):
        gated = jax.nn.glu(layers.dense(p, layers.layer_norm(p, x), 2 * size.width, "gated"))
        weight = p("depth", size.kernel, 1, size.width, scale=size.kernel**-0.5)
        layout = ("NWC", "WIO", "NWC")
        mixed = jax.lax.conv_general_dilated(
            gated, weight, (1,), "SAME", dimension_numbers=layout, feature_group_count=size.width
        )
        mixed = jax.nn.silu(layers.batch_norm(p, mixed, "batch_norm"))
        return layers.dense(p, mixed, size.width, "out")

    def block(p, x):
        x += half(p.at("first"), x)
        x += layers.multi_head(p, layers.layer_norm(p, x), size.heads)
        x += convolution(p.at("convolution"), x)
        return layers.layer_norm(p, x + half(p.at("second"), x), "last")

    def ctc(logs, letters):
        """Sum over all alignments, letters with a blank (0) before, between and after them."""
        labels = jnp.zeros((len(logs), 2 * size.letters + 1), int).at[:, 1::2].set(letters)
        may_skip = (labels != jnp.roll(labels, 2, 1)) & (labels > 0)
        may_skip = may_skip.at[:, :2].set(False)

        def advance(scores, frame):
            one, two = (
                jnp.pad(scores, ((0, 0), (n, 0)), constant_values=-1e9)[:, :-n] for n in (1, 2)
            )
            two = jnp.where(may_skip, two, -1e9)
            scores = jnp.logaddexp(jnp.logaddexp(scores, one), two)
            return scores + jnp.take_along_axis(frame, labels, 1), None

        start = jnp.full(labels.shape, -1e9).at[:, 0].set(0.0)
        scores, _ = jax.lax.scan(advance, start, logs.transpose(1, 0, 2))
        return -jnp.logaddexp(scores[:, -1], scores[:, -2]).mean() / size.letters

    def loss(p, spectrum, letters):
        x = jax.nn.relu(layers.conv(p, spectrum[..., None], size.width, 3, stride=2, name="one"))
        x = jax.nn.relu(layers.conv(p, x, size.width, 3, stride=2, name="two"))
        x = layers.dense(p, x.reshape(*x.shape[:2], -1), size.width, "flat")
        for index in range(size.layers):
            x = block(p.at(f"block{index}"), x)
        return ctc(jax.nn.log_softmax(layers.dense(p, x, size.words, "head")), letters)

    random = np.random.default_rng(0)
    shape = (size.batch, size.frames, BINS)
    spectrum = jnp.asarray(random.standard_normal(shape, dtype=np.float32))
    letters = jnp.asarray(random.integers(1, size.words, (size.batch, size.letters)))
    return layers.trained(loss, spectrum, letters)
