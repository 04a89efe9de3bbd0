"""Score a small batch of requests with a compiled model."""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(size)
        self.layer = nn.Linear(size, size)

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        return batch + nn.functional.gelu(self.layer(self.norm(batch)))


class Model(nn.Module):
    def __init__(self, size: int, depth: int) -> None:
        super().__init__()
        self.blocks = nn.Sequential(*(Block(size) for _ in range(depth)))

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        return self.blocks(batch).mean(-1)


def load(size: int) -> Model:
    torch.manual_seed(0)
    return Model(size, 6).eval()


@torch.inference_mode()
def score(requests: int, size: int) -> float:
    model = torch.compile(load(size))
    total = 0.0
    for _ in range(requests):
        total += model(torch.randn(64, size)).sum().item()  # the problem
    return total


if __name__ == "__main__":
    print(score(100, 128))
