"""Logistic regression on a table that fits into memory."""

from collections.abc import Iterator

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def table(rows: int) -> tuple[torch.Tensor, torch.Tensor]:
    features = torch.randn(rows, 20)
    return features, (features.sum(1) > 0).float()


def batches(
    features: torch.Tensor, classes: torch.Tensor, size: int
) -> Iterator[tuple[torch.Tensor, ...]]:
    yield from DataLoader(
        TensorDataset(features, classes), batch_size=size, shuffle=True
    )  # the problem


class Trainer:
    def __init__(self) -> None:
        self.model = nn.Linear(20, 1)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def step(self, features: torch.Tensor, classes: torch.Tensor) -> torch.Tensor:
        logits = self.model(features)[:, 0]
        loss = nn.functional.binary_cross_entropy_with_logits(logits, classes)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss


def main(epochs: int) -> None:
    torch.manual_seed(0)
    features, classes = table(40_000)
    trainer = Trainer()
    loss = torch.zeros(())
    for epoch in range(epochs):
        for batch in batches(features, classes, 512):
            loss = trainer.step(*batch)
        print(epoch, loss.item())


if __name__ == "__main__":
    main(8)
