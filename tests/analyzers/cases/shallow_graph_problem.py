"""Evaluates a network of few layers with gradients enabled, and collects its losses as tensors."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(
    nn.Linear(128, 512), nn.Tanh(), nn.Linear(512, 512), nn.Tanh(), nn.Linear(512, 8)
)


def evaluate(batches: int) -> float:
    losses = []
    for _ in range(batches):
        output = net(torch.randn(2048, 128))  # the problem
        losses.append(output.square().mean())
    return float(torch.stack(losses).mean())


evaluate(16)
