"""Sorts the distances once, before the first step."""

import torch
from torch import nn

torch.manual_seed(0)
points = torch.randn(600, 8)
distances = torch.cdist(points, points)
net = nn.Sequential(nn.Linear(8, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 8))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
order = distances.sort(dim=1).indices
nearest = points.index_select(0, order[:, 1])
for _ in range(20):
    loss = nn.functional.mse_loss(net(points), nearest)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
