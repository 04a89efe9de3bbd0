"""Trains a classifier with an encoder that was trained before."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(256, 384), nn.ReLU(), nn.Linear(384, 64), nn.ReLU())
        self.classify = nn.Linear(64, 10)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        return self.classify(self.encode(values))


torch.manual_seed(0)
model = Model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for _ in range(60):
    scores = model(torch.randn(512, 256))
    loss = nn.functional.cross_entropy(scores, torch.randint(10, (512,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
