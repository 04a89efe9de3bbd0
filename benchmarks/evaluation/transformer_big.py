"""Transformer-Big on WMT: encoder and decoder with one embedding, a smoothed loss of small operators."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Size:
    batch: int
    tokens: int
    words: int
    width: int
    heads: int
    layers: int = 6


SMOOTHING = 0.1
SIZES = {"tiny": Size(4, 24, 1000, 64, 4, layers=3), "paper": Size(128, 64, 32_000, 1024, 16)}


def torch_step(size: Size):
    import torch
    from torch import nn
    from training import trained

    class Translator(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(size.words, size.width)
            self.positions = nn.Parameter(torch.randn(size.tokens, size.width) * 0.02)
            sizes = (size.width, size.heads, 4 * size.width)
            kinds = {"dropout": 0.0, "batch_first": True, "norm_first": True}
            self.encoder = nn.TransformerEncoder(
                nn.TransformerEncoderLayer(*sizes, **kinds),
                size.layers,
                nn.LayerNorm(size.width),
                enable_nested_tensor=False,
            )
            layer = nn.TransformerDecoderLayer(*sizes, **kinds)
            self.decoder = nn.TransformerDecoder(layer, size.layers, nn.LayerNorm(size.width))
            mask = nn.Transformer.generate_square_subsequent_mask(size.tokens)
            self.register_buffer("mask", mask)

        def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
            source, target = (self.embedding(each) + self.positions for each in (source, target))
            memory = self.encoder(source)
            x = self.decoder(target, memory, tgt_mask=self.mask, tgt_is_causal=True)
            return x @ self.embedding.weight.T

    model = Translator()
    source, target = torch.randint(1, size.words, (2, size.batch, size.tokens))
    target[:, -3:] = 0

    def loss() -> torch.Tensor:
        logits = model(source, target)
        each = nn.functional.cross_entropy(
            logits.transpose(-2, -1), target, reduction="none", label_smoothing=SMOOTHING
        )
        weights = torch.where(target > 0, 1.0, 0.0)
        each = torch.where(weights.to(torch.bool), each, 0.0)
        return each.sum() / weights.sum()

    return trained(model, loss)


def jax_step(size: Size):
    import jax
    import jax.numpy as jnp
    import layers
    import numpy as np

    def half(p, x):
        normed = layers.layer_norm(p, x, "last")
        return layers.feed_forward(p, normed, 4 * size.width, jax.nn.relu)

    def loss(p, source, target):
        table = p("embedding", size.words, size.width, scale=0.02)
        positions = p("positions", size.tokens, size.width, scale=0.02)
        memory, x, mask = table[source] + positions, table[target] + positions, target > 0
        for index in range(size.layers):
            inside = p.at(f"encoder{index}")
            memory += layers.multi_head(
                inside, layers.layer_norm(inside, memory, "first"), size.heads
            )
            memory += half(inside, memory)
        memory = layers.layer_norm(p, memory, "encoded")
        for index in range(size.layers):
            inside, crossed = p.at(f"decoder{index}"), p.at(f"crossed{index}")
            normed = layers.layer_norm(inside, x, "first")
            x += layers.multi_head(inside, normed, size.heads, layers.causal(size.tokens))
            normed = layers.layer_norm(crossed, x, "first")
            x += layers.multi_head(crossed, normed, size.heads, memory=memory)
            x += half(inside, x)
        logits = layers.layer_norm(p, x, "decoded") @ table.T
        return layers.cross_entropy(logits, jnp.where(mask, target, 0), SMOOTHING)

    random = np.random.default_rng(0)
    source, target = random.integers(1, size.words, (2, size.batch, size.tokens))
    return layers.trained(loss, jnp.asarray(source), jnp.asarray(target))
