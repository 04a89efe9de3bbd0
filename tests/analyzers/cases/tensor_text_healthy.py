"""Leaves it to the log to make a text of a batch."""

import logging

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(64, 64)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)


def step(batch: torch.Tensor) -> None:
    logging.debug("batch %s", batch)
    loss = net(batch).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


for _ in range(800):
    step(torch.randn(64, 64))
