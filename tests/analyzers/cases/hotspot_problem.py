"""Sorts the same distances again in every step."""

import torch
from torch import nn

torch.manual_seed(0)
points = torch.randn(500, 8)
net = nn.Linear(8, 8)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for _ in range(15):
    order = torch.cdist(points, points).sort(dim=1).indices  # the problem
    loss = (net(points) - points.index_select(0, order[:, 1])).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
