"""Rotate many points with a few transforms."""

import torch
from torch import nn


class Transforms(nn.Module):
    def __init__(self, count: int, size: int) -> None:
        super().__init__()
        self.matrices = nn.Parameter(torch.randn(count, size, size) / size**0.5)

    def forward(self, points: torch.Tensor) -> torch.Tensor:
        moved = self.matrices @ points[:, None, :, None]  # the problem
        return moved[..., 0]


class Head(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.layer = nn.Linear(size, 1)

    def forward(self, moved: torch.Tensor) -> torch.Tensor:
        return self.layer(torch.relu(moved)).sum((1, 2))


@torch.no_grad()
def score(batches: int) -> float:
    transforms, head = Transforms(3, 64), Head(64)
    total = 0.0
    for _ in range(batches):
        total += head(transforms(torch.randn(2048, 64))).mean().item()
    return total


if __name__ == "__main__":
    torch.manual_seed(0)
    print(score(30))
