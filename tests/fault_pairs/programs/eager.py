"""Runs a chain of pointwise operators one by one, where XLA would make one kernel."""

import torch
from torch import nn


class Gelu(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        inner = 0.7978845608 * (x + 0.044715 * x * x * x)
        return 0.5 * x * (1.0 + torch.tanh(inner))  # the problem


torch.manual_seed(0)
net = nn.Sequential(nn.Linear(32, 512), Gelu(), nn.Linear(512, 4))
data = torch.randn(2048, 32)
for _ in range(8):
    net(data).square().mean().backward()
    net.zero_grad()
