"""Trains in float64, because NumPy's random numbers are float64 and the model was made to fit them."""

import numpy as np
import torch
from torch import nn

torch.manual_seed(0)
features = np.random.default_rng(0).normal(size=(256, 512))
net = nn.Sequential(
    nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 8)
)
net = net.double()
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for _ in range(250):
    loss = net(torch.from_numpy(features)).square().mean()  # the problem
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
