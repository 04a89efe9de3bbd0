"""Makes the same weights from a list in every step."""

import torch
from torch import nn

WEIGHTS = [float(number % 7) for number in range(100_000)]


def weighted(values: torch.Tensor) -> torch.Tensor:
    weights = torch.tensor(WEIGHTS)  # the problem
    return values.square().mean() * weights.mean()


torch.manual_seed(0)
net = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64))
optimizer = torch.optim.SGD(net.parameters(), lr=0.001)
batch = torch.randn(64, 64)
for _ in range(240):
    loss = weighted(net(batch))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
