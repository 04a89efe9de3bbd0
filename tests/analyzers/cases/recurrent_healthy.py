"""Reads the same sequences with torch's recurrent layer."""

import torch
from torch import nn

torch.manual_seed(0)
net, head = nn.LSTM(32, 64), nn.Linear(64, 8)
optimizer = torch.optim.SGD([*net.parameters(), *head.parameters()], lr=0.01)
data = torch.randn(40, 16, 32)
for _ in range(10):
    outputs, _ = net(data)
    head(outputs[-1]).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
