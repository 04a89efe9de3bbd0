"""Trains with the detection of anomalies, which was switched on to find a NaN."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(*(nn.Sequential(nn.Linear(32, 32), nn.Tanh()) for _ in range(20)))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)


def step(batch: torch.Tensor) -> None:
    loss = (net(batch) - batch).square().mean()
    optimizer.zero_grad()
    loss.backward()  # the problem
    optimizer.step()


with torch.autograd.set_detect_anomaly(True):
    for _ in range(60):
        step(torch.randn(64, 32))
