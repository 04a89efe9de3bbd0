"""Train and keep the best state."""

import copy
from typing import Any

import torch
from torch import nn


class EarlyStopping:
    def __init__(self) -> None:
        self.best = float("inf")
        self.state: dict[str, Any] = {}

    def look(self, loss: float, model: nn.Module) -> None:
        state = copy.deepcopy(model.state_dict())  # the problem
        if loss < self.best:
            self.best, self.state = loss, state


def build() -> nn.Module:
    layers: list[nn.Module] = []
    for _ in range(30):
        layers += [nn.Linear(256, 256), nn.ReLU()]
    return nn.Sequential(*layers)


def train(steps: int) -> float:
    model = build()
    stopping = EarlyStopping()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    for _ in range(steps):
        batch = torch.randn(16, 256)
        loss = (model(batch) - torch.randn(16, 256)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        stopping.look(loss.item(), model)
    return stopping.best


if __name__ == "__main__":
    torch.manual_seed(0)
    print(train(200))
