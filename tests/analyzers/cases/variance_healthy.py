"""Uses batches of one size."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(512, 512).requires_grad_(requires_grad=False)
data = torch.randn(24000, 512)
for _ in range(40):
    net(data[:3000])
