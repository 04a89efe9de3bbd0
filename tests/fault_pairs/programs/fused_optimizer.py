"""Trains a deep, narrow network with an optimizer that is not fused across tensors."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(*(nn.Linear(48, 48) for _ in range(24)))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-4, foreach=False)
data = torch.randn(64, 48)
for _ in range(30):
    loss = nn.functional.mse_loss(net(data), data)
    loss.backward()
    optimizer.step()  # the problem
    optimizer.zero_grad()
