"""Converts all its data in every step, because NumPy made it float64."""

import torch
from torch import nn

torch.manual_seed(0)
data = torch.ones(4096, 256, dtype=torch.float64)
net = nn.Linear(256, 4)
for _ in range(60):
    net(data.float()).square().mean().backward()  # the problem
    net.zero_grad()
