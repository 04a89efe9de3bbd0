"""A recommendation model like DLRM-small: one table for all features, looked up by indexing."""

import torch
from torch import nn


class Recommender(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        chunks = [torch.randn(5000, 16) for _ in range(4)]
        self.chunks = nn.ParameterList(chunks)
        self.top = nn.Parameter(torch.randn(16 * 8))

    def forward(self, items: torch.Tensor) -> torch.Tensor:
        table = torch.cat(list(self.chunks))
        rows = table[items]  # the problem
        return rows.flatten(1) @ self.top


torch.manual_seed(0)
net = Recommender()
data = torch.randint(0, 20000, (2048, 8))
for _ in range(80):
    net(data).square().mean().backward()
    net.zero_grad()
