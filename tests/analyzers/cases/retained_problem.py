"""Keeps the graph after the last of two backwards, and so the activations until the next step's are there."""

import torch
from torch import nn

torch.manual_seed(0)
encoder = nn.Sequential(
    nn.Linear(16, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh()
)
decoder = nn.Linear(64, 16)
optimizer = torch.optim.SGD([*encoder.parameters(), *decoder.parameters()], lr=0.1)
inputs = torch.randn(60000, 16)
for _ in range(6):
    code = encoder(inputs)  # the problem
    error = nn.functional.mse_loss(decoder(code), inputs)
    penalty = 0.01 * code.abs().mean()
    optimizer.zero_grad()
    error.backward(retain_graph=True)
    penalty.backward(retain_graph=True)
    optimizer.step()
