"""Trains a classifier; its model also rebuilds the input, as it did in an earlier stage of the training."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(256, 384), nn.ReLU(), nn.Linear(384, 64), nn.ReLU())
        self.rebuild = nn.Sequential(nn.Linear(64, 768), nn.ReLU(), nn.Linear(768, 256))
        self.classify = nn.Linear(64, 10)

    def forward(self, values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        code = self.encode(values)
        return self.classify(code), self.rebuild(code)  # the problem


torch.manual_seed(0)
model = Model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for _ in range(60):
    scores, _ = model(torch.randn(512, 256))
    loss = nn.functional.cross_entropy(scores, torch.randint(10, (512,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
