"""Trains in float32; Python's numbers and one small table of float64 change nothing."""

import numpy as np
import torch
from torch import nn

torch.manual_seed(0)
features = np.random.default_rng(0).normal(size=(256, 512)).astype(np.float32)
net = nn.Sequential(
    nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 8)
)
weights = torch.linspace(0.0, 1.0, 8, dtype=torch.float64)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for _ in range(250):
    outputs = net(torch.from_numpy(features) * 0.5)
    loss = (outputs.square().mean(0) * weights).sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
