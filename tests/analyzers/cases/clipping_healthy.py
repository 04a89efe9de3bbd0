"""Computes the norms of all gradients at once, and reads the largest."""

import torch
from torch import nn

torch.manual_seed(0)
parameters = [nn.Parameter(torch.ones(8)) for _ in range(400)]
optimizer = torch.optim.SGD(parameters, lr=0.01, foreach=True)
for _ in range(40):
    torch.cat(parameters).square().sum().backward()
    norms = torch._foreach_norm([parameter.grad for parameter in parameters])
    largest = torch.stack(norms).max().item()
    optimizer.step()
    optimizer.zero_grad()
