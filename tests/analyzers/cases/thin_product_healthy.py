"""Trains a small correction of a fixed filter bank, factor by factor, and scores of all pairs of signals."""

import torch
from torch import nn


class Bank(nn.Module):
    def __init__(self, size: int, rank: int) -> None:
        super().__init__()
        self.register_buffer("fixed", torch.randn(size, size) / size**0.5)
        self.left = nn.Parameter(torch.randn(size, rank) / size**0.5)
        self.right = nn.Parameter(torch.randn(size, rank) / rank**0.5)

    def forward(self, signals: torch.Tensor) -> torch.Tensor:
        correction = nn.functional.linear(signals @ self.right, self.left)
        return nn.functional.linear(signals, self.fixed) - correction / 4


class Pairs(nn.Module):
    """The scores of all pairs are a product of thin matrices, too, and go through a softmax."""

    def forward(self, signals: torch.Tensor) -> torch.Tensor:
        scores = (signals @ signals.t()).softmax(-1)
        return nn.functional.linear(scores[:8], signals.t())


torch.manual_seed(0)
torch.set_num_threads(1)
net = nn.Sequential(Bank(768, 4), nn.Tanh(), Bank(768, 4))
pairs = nn.Sequential(nn.Linear(16, 16), Pairs())
optimizer = torch.optim.SGD([*net.parameters(), *pairs.parameters()], lr=0.01)
for _ in range(40):
    signals = torch.randn(8, 768)
    loss = (net(signals) - signals).square().mean() + pairs(torch.randn(512, 16)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(sum(value.sum().item() for value in net.parameters()))
