"""Trains a head on a backbone from a file, whose tensors are let go of."""

import tempfile
from pathlib import Path

import torch
from torch import nn


class Backbone(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.wide = nn.Linear(4096, 4096)
        self.narrow = nn.Linear(4096, 32)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.narrow(self.wide(inputs).relu())


def write(path: Path) -> None:
    torch.save(Backbone().state_dict(), path)


torch.manual_seed(0)
with tempfile.TemporaryDirectory() as folder:
    write(Path(folder) / "weights.pt")
    backbone = Backbone()
    backbone.load_state_dict(torch.load(Path(folder) / "weights.pt"))

head = nn.Linear(32, 4)
optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
inputs, labels = torch.randn(64, 4096), torch.randint(4, (64,))
for _ in range(10):
    with torch.no_grad():
        features = backbone(inputs)
    nn.functional.cross_entropy(head(features), labels).backward()
    optimizer.step()
    optimizer.zero_grad()
