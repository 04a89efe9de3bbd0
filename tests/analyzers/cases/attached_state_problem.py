"""Passes a state on from batch to batch with its graph, so that each backward goes through all batches."""

import torch
from torch import nn

torch.manual_seed(0)
cell = nn.RNNCell(8, 32)
head = nn.Linear(32, 8)
parameters = [*cell.parameters(), *head.parameters()]
state = torch.zeros(16, 32)
for _ in range(50):
    loss = torch.zeros(())
    for _ in range(5):
        batch = torch.randn(16, 8)
        state = cell(batch, state)
        loss = loss + (head(state) - batch).square().mean()
    gradients = torch.autograd.grad(loss, parameters, retain_graph=True)  # the problem
    with torch.no_grad():
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.data.add_(gradient, alpha=-0.01)
