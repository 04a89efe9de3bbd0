"""A recommendation model like DLRM-small: one table for all features, looked up by indexing."""

import torch
from torch import nn


class Recommender(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(20000, 16))
        self.top = nn.Parameter(torch.randn(16 * 8))

    def forward(self, items: torch.Tensor) -> torch.Tensor:
        rows = self.table[items]  # the problem
        return rows.flatten(1) @ self.top


torch.manual_seed(0)
net = Recommender()
data = torch.randint(0, 20000, (2048, 8))
for _ in range(80):
    net(data).square().mean().backward()
    net.zero_grad()
