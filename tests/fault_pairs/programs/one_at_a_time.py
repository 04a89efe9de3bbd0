"""Embed documents for a search index."""

import torch
from torch import nn


class Embedder(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(size, size),
            nn.GELU(),
            nn.LayerNorm(size),
            nn.Linear(size, size),
            nn.GELU(),
            nn.Linear(size, 64),
        )

    def forward(self, documents: torch.Tensor) -> torch.Tensor:
        return nn.functional.normalize(self.layers(documents), dim=-1)


class Index:
    def __init__(self, model: Embedder) -> None:
        self.model = model
        self.vectors: list[torch.Tensor] = []

    @torch.inference_mode()
    def add(self, documents: torch.Tensor) -> None:
        for document in documents:
            self.vectors.append(self.model(document[None]))  # the problem

    def search(self, query: torch.Tensor) -> int:
        return int((torch.cat(self.vectors) @ query).argmax())


def main(count: int, size: int) -> None:
    torch.manual_seed(0)
    index = Index(Embedder(size).eval())
    index.add(torch.randn(count, size))
    print(index.search(torch.randn(64)))


if __name__ == "__main__":
    main(10_000, 384)
