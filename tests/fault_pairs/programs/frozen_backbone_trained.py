"""Train a linear probe on a frozen network."""

import torch
from torch import nn


class Backbone(nn.Module):
    def __init__(self, size: int, depth: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            *(nn.Sequential(nn.Linear(size, size), nn.GELU()) for _ in range(depth))
        )

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        return self.layers(batch)


class Probe(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.backbone = Backbone(size, 12).eval()
        self.head = nn.Linear(size, 10)

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        features = self.backbone(batch)  # the problem
        return self.head(features)


def train(steps: int, size: int) -> float:
    model = Probe(size)
    optimizer = torch.optim.SGD(model.head.parameters(), lr=0.1)
    loss = torch.zeros(())
    for _ in range(steps):
        batch, classes = torch.randn(64, size), torch.randint(0, 10, (64,))
        loss = nn.functional.cross_entropy(model(batch), classes)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


if __name__ == "__main__":
    torch.manual_seed(0)
    print(train(60, 512))
