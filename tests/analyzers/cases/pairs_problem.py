"""Assigns points to centers by squared distances, which are computed from all differences."""

import torch
from torch import nn


def distances(points: torch.Tensor, centers: torch.Tensor) -> torch.Tensor:
    apart = points.unsqueeze(1) - centers.unsqueeze(0)  # the problem
    return apart.square().sum(-1)


torch.manual_seed(0)
net = nn.Linear(16, 8)
centers = nn.Parameter(torch.randn(200, 8))
optimizer = torch.optim.SGD([*net.parameters(), centers], lr=0.01)
inputs = torch.randn(500, 16)
for _ in range(25):
    apart = distances(net(inputs), centers)
    apart.amin(1).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
