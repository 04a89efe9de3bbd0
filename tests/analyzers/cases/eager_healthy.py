"""The same model with one operator for the chain."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(32, 512), nn.GELU(approximate="tanh"), nn.Linear(512, 4))
data = torch.randn(2048, 32)
for _ in range(8):
    net(data).square().mean().backward()
    net.zero_grad()
