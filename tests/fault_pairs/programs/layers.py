"""Trains many narrow layers: a loop of small operators that is the model itself."""

import torch
from torch import nn


class Deep(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(16, 16) for _ in range(50))

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            batch = batch + torch.tanh(layer(batch))
        return batch


torch.manual_seed(0)
net = Deep()
optimizer = torch.optim.SGD(net.parameters(), lr=0.01, foreach=True)
for _ in range(30):
    net(torch.randn(16, 16)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
