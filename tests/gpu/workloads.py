"""Steps of models whose overhead is measured: GPT-2 small, ResNet-50, a DLRM, decoding one token.

Each function makes a step for a device; `is_small` makes one that a machine without a GPU can run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn
from torch.nn import functional

if TYPE_CHECKING:
    from collections.abc import Callable

    Step = Callable[[], object]


class Block(nn.Module):  # type: ignore[misc]
    """A block of GPT-2; with a cache it takes one token."""

    cache: torch.Tensor | None

    def __init__(self, width: int, heads: int, cache_length: int) -> None:
        super().__init__()
        self.heads = heads
        shape = (2, 1, heads, cache_length, width // heads)
        # A buffer, so that its address is fixed for a CUDA graph.
        self.register_buffer("cache", torch.zeros(shape) if cache_length else None)
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        parts = self.qkv(self.norms[0](x)).view(batch, length, 3, self.heads, -1)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        if self.cache is not None:
            self.cache[:, :, :, -1:] = torch.stack((key, value))
            key, value = self.cache.unbind()
        mixed = functional.scaled_dot_product_attention(
            query, key, value, is_causal=self.cache is None
        )
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.norms[1](x))


class Gpt2(nn.Module):  # type: ignore[misc]
    """GPT-2 small: 12 blocks of width 768, 50,257 tokens where not said otherwise."""

    def __init__(self, *, is_small: bool, cache_length: int = 0, tokens: int = 50257) -> None:
        super().__init__()
        width, heads = (64, 4) if is_small else (768, 12)
        self.tokens, blocks = (500, 2) if is_small else (tokens, 12)
        self.embedding = nn.Embedding(self.tokens, width)
        self.blocks = nn.ModuleList([Block(width, heads, cache_length) for _ in range(blocks)])
        self.norm = nn.LayerNorm(width)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.embedding(ids)
        for block in self.blocks:
            x = block(x)
        return functional.linear(self.norm(x), self.embedding.weight)


def gpt2(device: str, *, is_small: bool) -> Step:
    """Train GPT-2 small on sequences of 1,024 tokens."""
    model = Gpt2(is_small=is_small).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    batch, length = (2, 32) if is_small else (8, 1024)
    ids = torch.randint(0, model.tokens, (batch, length + 1), device=device)

    def step() -> object:
        with torch.autocast(torch.device(device).type, torch.bfloat16):
            logits = model(ids[:, :-1])
            loss = functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
        return _train(loss, optimizer)

    return step


class Bottleneck(nn.Module):  # type: ignore[misc]
    """Three convolutions beside a shortcut."""

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        sizes = ((channels, width, 1, 1), (width, width, 3, stride), (width, 4 * width, 1, 1))
        layers: list[nn.Module] = []
        for inner, outer, side, step in sizes:
            layers += [nn.Conv2d(inner, outer, side, step, side // 2, bias=False)]
            layers += [nn.BatchNorm2d(outer), nn.ReLU()]
        self.body = nn.Sequential(*layers[:-1])
        is_same = stride == 1 and channels == 4 * width
        project = nn.Conv2d(channels, 4 * width, 1, stride, bias=False)
        self.shortcut = (
            nn.Identity() if is_same else nn.Sequential(project, nn.BatchNorm2d(4 * width))
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.relu(self.body(x) + self.shortcut(x))


def resnet50(device: str, *, is_small: bool) -> Step:
    """Train ResNet-50 on pictures of 224 x 224."""
    layers: list[nn.Module] = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
    layers.append(nn.MaxPool2d(3, 2, 1))
    channels = 64
    for stage, blocks in enumerate((1, 1) if is_small else (3, 4, 6, 3)):
        for place in range(blocks):
            width = 64 * 2**stage
            layers.append(Bottleneck(channels, width, 2 if stage > 0 and place == 0 else 1))
            channels = 4 * width
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 1000)]
    model = nn.Sequential(*layers).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    batch, side = (2, 32) if is_small else (64, 224)
    pictures = torch.randn(batch, 3, side, side, device=device)
    labels = torch.randint(0, 1000, (batch,), device=device)
    return lambda: _train(functional.cross_entropy(model(pictures), labels), optimizer)


def dlrm(device: str, *, is_small: bool) -> Step:
    """Train 26 tables of embeddings, whose products feed a perceptron: many small kernels."""
    tables, rows, width, batch = (4, 100, 16, 8) if is_small else (26, 200_000, 64, 2048)
    embeddings = nn.ModuleList([nn.EmbeddingBag(rows, width, mode="sum") for _ in range(tables)])
    bottom = nn.Sequential(nn.Linear(13, 256), nn.ReLU(), nn.Linear(256, width), nn.ReLU())
    pairs = (tables + 1) * tables // 2
    top = nn.Sequential(nn.Linear(pairs + width, 512), nn.ReLU(), nn.Linear(512, 1))
    model = nn.ModuleList([embeddings, bottom, top]).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    dense = torch.randn(batch, 13, device=device)
    bags = torch.randint(0, rows, (tables, batch, 4), device=device)
    clicks = torch.rand(batch, device=device).round()
    row, column = torch.triu_indices(tables + 1, tables + 1, 1, device=device)

    def step() -> object:
        first = bottom(dense)
        vectors = [first, *(table(bag) for table, bag in zip(embeddings, bags, strict=True))]
        stacked = torch.stack(vectors, 1)
        products = torch.bmm(stacked, stacked.transpose(1, 2))[:, row, column]
        clicked = top(torch.cat((first, products), 1)).squeeze(1)
        loss = functional.binary_cross_entropy_with_logits(clicked, clicks)
        return _train(loss, optimizer)

    return step


def decode(device: str, *, is_small: bool, is_compiled: bool = False) -> Step:
    """Generate one token with a cache of 512, batch 1: bound by launches."""
    model = Gpt2(is_small=is_small, cache_length=512).to(device).eval()
    model.requires_grad_(requires_grad=False)
    token = torch.zeros(1, 1, dtype=torch.long, device=device)
    forward = torch.compile(model, mode="reduce-overhead") if is_compiled else model

    def step() -> object:
        with torch.no_grad():
            return token.copy_(forward(token)[:, -1:].argmax(-1))

    return step


def decode_graphs(device: str, *, is_small: bool) -> Step:
    """Generate one token with a compiled model, which runs as CUDA graphs."""
    return decode(device, is_small=is_small, is_compiled=True)


def _train(loss: torch.Tensor, optimizer: torch.optim.Optimizer) -> object:
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


WORKLOADS = {
    "gpt2": gpt2,
    "resnet50": resnet50,
    "dlrm": dlrm,
    "decode": decode,
    "decode_graphs": decode_graphs,
}
