"""Collects garbage in each step, in a program with many objects."""

import gc

import torch
from torch import nn

torch.manual_seed(0)
records = [{"id": number, "words": [str(number)]} for number in range(200_000)]
net = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 8))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
data = torch.randn(256, 256)
for _ in range(25):
    net(data).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    gc.collect()  # the problem
