"""Converts all pictures to float32 and scales them, and holds them so."""

import torch
from torch import nn

torch.manual_seed(0)
stored = torch.randint(0, 256, (6000, 3 * 32 * 32), dtype=torch.uint8)
pixels = stored.float().div_(255)  # the problem
net = nn.Linear(3 * 32 * 32, 10)
for chosen in torch.randperm(len(pixels)).split(500):
    net(pixels[chosen]).square().mean().backward()
