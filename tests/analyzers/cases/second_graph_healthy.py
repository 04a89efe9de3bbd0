"""Finds inputs that a fixed network calls likely."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(
    nn.Linear(64, 256), nn.Softplus(), nn.Linear(256, 256), nn.Softplus(), nn.Linear(256, 1)
)
model.requires_grad_(requires_grad=False)
values = torch.randn(12_000, 64)
for _ in range(20):
    values.requires_grad_()
    energy = model(values).sum()
    (slope,) = torch.autograd.grad(energy, values)
    values = (values - 0.1 * slope + 0.01 * torch.randn(12_000, 64)).detach()
