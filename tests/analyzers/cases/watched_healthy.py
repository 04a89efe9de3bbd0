"""Trains a network, and notes how its gradients are spread after some steps."""

import torch
from torch import nn


def spread(model: nn.Module, levels: torch.Tensor) -> list[list[float]]:
    return [torch.quantile(weight.grad.flatten(), levels).tolist() for weight in model.parameters()]


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(128, 512), nn.ReLU(), nn.Linear(512, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
levels = torch.tensor([0.05, 0.5, 0.95])
notes = []
for step in range(60):
    loss = model(torch.randn(256, 128)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    if step % 30 == 0:
        notes.append(spread(model, levels))
    optimizer.step()
