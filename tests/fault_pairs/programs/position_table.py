"""Classify long sequences with sinusoidal positions."""

import math

import torch
from torch import nn


class Positions(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size

    def table(self, length: int) -> torch.Tensor:
        position = torch.arange(length)[:, None]
        rate = torch.exp(torch.arange(0, self.size, 2) * (-math.log(10000.0) / self.size))
        angles = position * rate
        return torch.stack((angles.sin(), angles.cos()), -1).flatten(1)  # the problem

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return tokens + self.table(tokens.shape[1])


class Classifier(nn.Module):
    def __init__(self, vocabulary: int, size: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, size)
        self.positions = Positions(size)
        self.head = nn.Linear(size, 4)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.positions(self.embedding(tokens)).amax(1))


@torch.inference_mode()
def classify(requests: int) -> int:
    model = Classifier(1000, 256).eval()
    last = 0
    for _ in range(requests):
        last = int(model(torch.randint(0, 1000, (1, 2048))).argmax())
    return last


if __name__ == "__main__":
    torch.manual_seed(0)
    print(classify(200))
