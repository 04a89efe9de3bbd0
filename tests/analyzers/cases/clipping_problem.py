"""Reads the largest gradient of each parameter, one after another."""

import torch
from torch import nn

torch.manual_seed(0)
parameters = [nn.Parameter(torch.ones(8)) for _ in range(400)]
optimizer = torch.optim.SGD(parameters, lr=0.01, foreach=True)
for _ in range(40):
    torch.cat(parameters).square().sum().backward()
    largest = 0.0
    for parameter in parameters:
        largest = max(largest, parameter.grad.norm().item())  # the problem
    optimizer.step()
    optimizer.zero_grad()
