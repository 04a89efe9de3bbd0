"""Sorts the distances once; products take most of the time."""

import torch
from torch import nn

torch.manual_seed(0)
points = torch.randn(400, 8)
net = nn.Sequential(nn.Linear(8, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 8))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
order = (points[:, None] - points).square().sum(-1).sort(dim=1).indices
nearest = points.index_select(0, order[:, 1])
for _ in range(15):
    loss = nn.functional.mse_loss(net(points), nearest)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
