"""Drops the gradients of the step before."""

import torch
from torch import nn

torch.manual_seed(0)
towers = nn.ModuleList(nn.Linear(256, 256) for _ in range(40))
optimizer = torch.optim.SGD(towers.parameters(), lr=0.01)


def step(number: int) -> None:
    batch = torch.randn(32, 256)
    optimizer.zero_grad()
    (towers[number % 40](batch) - batch).square().mean().backward()
    optimizer.step()


for number in range(100):
    step(number)
