"""Collects copies of the first row of each result."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 1024))


@torch.inference_mode()
def collect(batches: int) -> torch.Tensor:
    first = []
    for _ in range(batches):
        result = net(torch.randn(512, 64))
        first.append(result[0].clone())
    return torch.stack(first)


collect(40)
