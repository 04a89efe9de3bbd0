"""Passes a state on from batch to batch without its graph."""

import torch
from torch import nn

torch.manual_seed(0)
cell = nn.RNNCell(8, 32)
head = nn.Linear(32, 8)
parameters = [*cell.parameters(), *head.parameters()]
state = torch.zeros(16, 32)
for _ in range(50):
    loss, state = torch.zeros(()), state.detach()
    for _ in range(5):
        batch = torch.randn(16, 8)
        state = cell(batch, state)
        loss = loss + (head(state) - batch).square().mean()
    gradients = torch.autograd.grad(loss, parameters)
    with torch.no_grad():
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.data.add_(gradient, alpha=-0.01)
