"""Multiplies with a matrix of roads that is nearly all zeros."""

import torch
from torch import nn


def roads(places: int, count: int) -> torch.Tensor:
    """Return how much of each place's traffic goes to each other place."""
    ends = torch.randint(places, (2, count))
    shares = torch.sparse_coo_tensor(ends, torch.rand(count), (places, places))
    return shares.coalesce().to_dense()  # the problem


torch.manual_seed(0)
net = nn.Linear(32, 32)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
traffic = torch.randn(2000, 32)
matrix = roads(2000, 6000)
for _ in range(20):
    spread = torch.tanh(net(traffic))
    for _ in range(3):
        spread = matrix @ spread
    (spread - traffic).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
