"""Adds up the losses of the samples of a batch one by one."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)


def loss_of(rows: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    loss = torch.zeros(())
    for row, target in zip(rows, targets, strict=True):
        loss = loss + (net(row[None]) - target).square().sum()  # the problem
    return loss / len(rows)


for _ in range(20):
    loss_of(torch.randn(64, 16), torch.randn(64)).backward()
    optimizer.step()
    optimizer.zero_grad()
