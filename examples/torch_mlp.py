"""Fit a multi-layer perceptron to a two-spirals data set.

The smallest program of the examples: one file, no options needed, a second or two.
"""

from __future__ import annotations

import argparse
import math

import torch
from torch import nn


def two_spirals(points: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return coordinates of shape (2 * points, 2) and class labels of shape (2 * points,)."""
    angle = torch.sqrt(torch.rand(points)) * 3 * math.pi
    arm = torch.stack([angle * torch.cos(angle), angle * torch.sin(angle)], dim=1) / 10
    coordinates = torch.cat([arm, -arm]) + 0.02 * torch.randn(2 * points, 2)
    labels = torch.cat([torch.zeros(points), torch.ones(points)]).long()
    return coordinates, labels


class Net(nn.Module):
    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(2, hidden)
        self.fc2 = nn.Linear(hidden, hidden)
        self.fc3 = nn.Linear(hidden, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.fc1(x))
        x = torch.relu(self.fc2(x))
        return self.fc3(x)


def main() -> None:
    parser = argparse.ArgumentParser(description="Fit a multi-layer perceptron to two spirals.")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--lr", type=float, default=1e-2)
    parser.add_argument("--threads", type=int, default=1, help="threads inside an operator")
    options = parser.parse_args()

    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    coordinates, labels = two_spirals(256)
    net = Net(options.hidden)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(net.parameters(), lr=options.lr)
    for step in range(options.steps):
        optimizer.zero_grad()
        loss = criterion(net(coordinates), labels)
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(f"step {step:3d}  loss {loss.item():.3f}")
    with torch.inference_mode():
        correct = (net(coordinates).argmax(dim=1) == labels).float().mean()
    print(f"accuracy {correct.item():.1%}")


if __name__ == "__main__":
    main()
