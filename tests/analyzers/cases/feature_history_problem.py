"""Trains a regression whose features are kept from each step, to look at them later."""

import torch
from torch import nn


class Features(nn.Module):
    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.layer = nn.Linear(inputs, width)
        self.history: list[torch.Tensor] = []

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        features = self.layer(batch).tanh()
        self.history.append(features.detach().clone())  # the problem
        return features


torch.manual_seed(0)
torch.set_num_threads(1)
net = nn.Sequential(Features(64, 1024), nn.Linear(1024, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for _ in range(60):
    batch = torch.rand(512, 64)
    loss = (net(batch)[:, 0] - batch.sum(1)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(sum(each.mean().item() for each in net[0].history) / 60)
