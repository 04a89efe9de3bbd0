"""Trains a small network, and follows the middle of all losses so far with NumPy."""

import numpy as np
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(16, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
losses: list[float] = []
for _ in range(8000):
    values = torch.randn(32, 16)
    loss = (model(values)[:, 0] - values.sum(1)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    middle = np.median(losses)  # the problem
