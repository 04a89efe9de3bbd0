"""Trains a small network, and follows the middle of the errors of all samples so far with NumPy."""

import numpy as np
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(16, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
errors: list[float] = []
for _ in range(1500):
    values = torch.randn(32, 16)
    error = (model(values)[:, 0] - values.sum(1)).square()
    loss = error.mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    errors += error.tolist()
    middle = np.median(errors)  # the problem
