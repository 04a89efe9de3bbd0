"""Makes the weights once, before the first step."""

import torch
from torch import nn

WEIGHTS = torch.tensor([float(number % 7) for number in range(100_000)])


def weighted(values: torch.Tensor) -> torch.Tensor:
    return values.square().mean() * WEIGHTS.mean()


torch.manual_seed(0)
net = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64))
optimizer = torch.optim.SGD(net.parameters(), lr=0.001)
batch = torch.randn(64, 64)
for _ in range(240):
    loss = weighted(net(batch))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
