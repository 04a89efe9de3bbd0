"""Logs a number of each step."""

import torch
from torch import nn


class Trainer:
    def __init__(self) -> None:
        torch.manual_seed(0)
        self.net = nn.Linear(64, 256)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.logged: list[float] = []
        self.recent: list[torch.Tensor] = []

    def step(self, batch: torch.Tensor) -> None:
        scores = self.net(batch)
        loss = scores.square().mean()
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.logged.append(loss.item())
        # The outputs of one step in pieces, as a loop over time has them.
        self.recent = list(scores.split(8))


trainer = Trainer()
data = torch.randn(512, 64)
for _ in range(200):
    trainer.step(data)
