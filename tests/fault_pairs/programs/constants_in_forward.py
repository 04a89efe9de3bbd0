"""Train a model with class weights and a table of prices."""

import torch
from torch import nn

CLASSES = 4000


def class_weights() -> list[float]:
    return [1.0 + (number % 7) / 7 for number in range(CLASSES)]


class WeightedLoss(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weights = class_weights()

    def forward(self, logits: torch.Tensor, classes: torch.Tensor) -> torch.Tensor:
        weights = torch.tensor(self.weights, device=logits.device)  # the problem
        return nn.functional.cross_entropy(logits, classes, weight=weights)


class Classifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(16, CLASSES)

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        return self.head(batch)


def train(steps: int) -> float:
    model, criterion = Classifier(), WeightedLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loss = torch.zeros(())
    for _ in range(steps):
        loss = criterion(model(torch.randn(8, 16)), torch.randint(0, CLASSES, (8,)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


if __name__ == "__main__":
    torch.manual_seed(0)
    print(train(3000))
