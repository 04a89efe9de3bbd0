"""Trains a small network, and follows a running mean of the errors of all samples so far."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(16, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
mean = 0.0
for step in range(1500):
    values = torch.randn(32, 16)
    error = (model(values)[:, 0] - values.sum(1)).square()
    loss = error.mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    mean += (loss.item() - mean) / (step + 1)
