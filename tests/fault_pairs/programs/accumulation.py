"""Adds up the gradients of eight batches in each step, which does not make a recurrent cell."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 512))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(6):
    for _ in range(8):
        batch = torch.randn(64, 512)
        loss = ((net(batch) - batch) / 2).tanh().square().mean() / 8
        loss.backward()
    optimizer.step()
    optimizer.zero_grad()
