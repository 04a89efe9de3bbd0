"""Trains in few steps and evaluates on many batches: a loop of small operators around the model."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(8, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01, foreach=True)


@torch.inference_mode()
def accuracy(batches: int) -> float:
    hits = torch.zeros(())
    for _ in range(batches):
        batch, classes = torch.randn(64, 8), torch.zeros(64, dtype=torch.long)
        hits += (net(batch).argmax(1) == classes).float().mean()
    return float(hits / batches)


for _ in range(6):
    net(torch.randn(256, 8)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
accuracy(1500)
