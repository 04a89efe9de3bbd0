"""Evaluates on a far larger batch in every eighth step, on the same path."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(512, 512).requires_grad_(requires_grad=False)
data = torch.randn(24000, 512)
for step in range(40):
    rows = 24000 if step % 8 == 7 else 16
    net(data[:rows])  # the problem
