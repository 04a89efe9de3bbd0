"""Holds sound as 16-bit integers, and converts and scales each batch."""

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
stored = torch.randint(-9999, 9999, (4000, 8000), dtype=torch.int16)
net = nn.Sequential(nn.AvgPool1d(16), nn.Linear(500, 64), nn.ReLU(), nn.Linear(64, 4))
for _ in range(3):
    for chosen in torch.randperm(len(stored)).split(100):
        net(stored[chosen].float().div_(2**15)).square().mean().backward()
