"""Evaluates a deep network with gradients enabled, so that each layer keeps its input."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(*(nn.Sequential(nn.Linear(256, 256), nn.GELU()) for _ in range(24)))


def evaluate(batches: int) -> float:
    score = 0.0
    for _ in range(batches):
        output = net(torch.randn(4096, 256))  # the problem
        score += output.square().mean().item()
    return score


evaluate(4)
