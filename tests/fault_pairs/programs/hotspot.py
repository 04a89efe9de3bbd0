"""Sorts the same distances in every step."""

import torch
from torch import nn

torch.manual_seed(0)
points = torch.randn(1500, 8)
distances = torch.cdist(points, points)
net = nn.Sequential(nn.Linear(8, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 8))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for _ in range(20):
    order = distances.sort(dim=1).indices  # the problem
    nearest = points.index_select(0, order[:, 1])
    loss = nn.functional.mse_loss(net(points), nearest)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
