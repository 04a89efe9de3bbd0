"""Trains a regression whose features are averaged in each step."""

import torch
from torch import nn


class Features(nn.Module):
    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.layer = nn.Linear(inputs, width)
        self.average = torch.zeros(width)

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        features = self.layer(batch).tanh()
        self.average += features.detach().mean(0) / 60
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
print(net[0].average.mean().item())
