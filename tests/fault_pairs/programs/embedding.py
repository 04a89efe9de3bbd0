"""A recommendation model with a few features per item, looked up by embedding."""

import torch
from torch import nn

torch.manual_seed(0)
table = nn.Parameter(torch.randn(2000, 4))
weight = torch.randn(4)
items = torch.randint(0, 2000, (65536,))
for _ in range(40):
    rows = nn.functional.embedding(items, table)  # the problem
    loss = (rows * weight).sum()
    loss.backward()
    table.grad = None
