"""nanoGPT: GPT-2 small as one file, with the fused attention of PyTorch, trained on random text."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Size:
    batch: int
    tokens: int
    words: int
    width: int
    layers: int
    heads: int


SIZES = {"tiny": Size(4, 64, 1000, 96, 6, 6), "paper": Size(12, 1024, 50_304, 768, 12, 12)}


def torch_step(size: Size):
    import torch
    from torch import nn
    from torch.nn import functional
    from training import trained

    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.split = nn.Linear(size.width, 3 * size.width)
            self.out = nn.Linear(size.width, size.width)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            parts = self.split(x).view(*x.shape[:2], 3, size.heads, -1).transpose(1, 3)
            q, k, v = parts.unbind(2)
            mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.out(mixed.transpose(1, 2).reshape(x.shape))

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.LayerNorm(size.width), nn.LayerNorm(size.width)
            self.attention = Attention()
            wide, narrow = (
                nn.Linear(size.width, 4 * size.width),
                nn.Linear(4 * size.width, size.width),
            )
            self.mlp = nn.Sequential(wide, nn.GELU(), narrow)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = x + self.attention(self.first(x))
            return x + self.mlp(self.second(x))

    class Gpt(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words = nn.Embedding(size.words, size.width)
            self.positions = nn.Embedding(size.tokens, size.width)
            self.blocks = nn.ModuleList(Block() for _ in range(size.layers))
            self.norm = nn.LayerNorm(size.width)

        def forward(self, ids: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
            places = torch.arange(ids.shape[1], device=ids.device)
            x = self.words(ids) + self.positions(places)
            for block in self.blocks:
                x = block(x)
            logits = functional.linear(self.norm(x), self.words.weight)
            return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())

    model = Gpt()
    text = torch.randint(size.words, (size.batch, size.tokens + 1))
    return trained(model, lambda: model(text[:, :-1], text[:, 1:]))


def jax_step(size: Size):
    import jax.numpy as jnp
    import layers
    import numpy as np

    def loss(p, ids, targets):
        table = p("words", size.words, size.width, scale=0.02)
        x = table[ids] + p("positions", size.tokens, size.width, scale=0.02)
        mask = layers.causal(size.tokens)
        for index in range(size.layers):
            inside = p.at(f"block{index}")
            x += layers.multi_head(inside, layers.layer_norm(inside, x, "first"), size.heads, mask)
            x += layers.feed_forward(inside, layers.layer_norm(inside, x, "second"), 4 * size.width)
        return layers.cross_entropy(layers.layer_norm(p, x) @ table.T, targets)

    text = np.random.default_rng(0).integers(size.words, size=(size.batch, size.tokens + 1))
    text = jnp.asarray(text)
    return layers.trained(loss, text[:, :-1], text[:, 1:])
