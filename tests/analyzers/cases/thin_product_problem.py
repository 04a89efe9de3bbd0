"""Trains a small correction of a fixed filter bank; each step multiplies the correction out."""

import torch
from torch import nn


class Bank(nn.Module):
    def __init__(self, size: int, rank: int) -> None:
        super().__init__()
        self.register_buffer("fixed", torch.randn(size, size) / size**0.5)
        self.left = nn.Parameter(torch.randn(size, rank) / size**0.5)
        self.right = nn.Parameter(torch.randn(size, rank) / rank**0.5)

    def forward(self, signals: torch.Tensor) -> torch.Tensor:
        correction = torch.mm(self.left, self.right.t())  # the problem
        return nn.functional.linear(signals, self.fixed - correction / 4)


torch.manual_seed(0)
torch.set_num_threads(1)
net = nn.Sequential(Bank(768, 4), nn.Tanh(), Bank(768, 4))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for _ in range(40):
    signals = torch.randn(8, 768)
    loss = (net(signals) - signals).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(sum(value.sum().item() for value in net.parameters()))
