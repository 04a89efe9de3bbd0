"""Trains a classifier on an encoder whose parameters still require gradients, which no optimizer uses."""

import torch
from torch import nn


class Classifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(*(nn.Linear(256, 256) for _ in range(6)))
        self.head = nn.Linear(256, 4)

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        return self.head(self.encoder(batch))  # the problem


torch.manual_seed(0)
model = Classifier()
optimizer = torch.optim.AdamW(model.head.parameters())
for _ in range(150):
    outputs = model(torch.randn(128, 256))
    optimizer.zero_grad()
    nn.functional.cross_entropy(outputs, torch.randint(0, 4, (128,))).backward()
    optimizer.step()
