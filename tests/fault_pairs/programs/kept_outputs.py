"""Logs the outputs of all steps as tensors, and with them what their backward needed."""

import torch
from torch import nn


class Trainer:
    def __init__(self) -> None:
        torch.manual_seed(0)
        self.net = nn.Linear(64, 256)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.logged: list[torch.Tensor] = []

    def step(self, batch: torch.Tensor) -> None:
        scores = self.net(batch)  # the problem
        loss = scores.square().mean()
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.logged.append(scores)


trainer = Trainer()
data = torch.randn(512, 64)
for _ in range(200):
    trainer.step(data)
