"""Trains with an optimizer written by hand, which updates one parameter after the other."""

from collections.abc import Iterable

import torch
from torch import nn


class RMSProp:
    def __init__(self, parameters: Iterable[nn.Parameter]) -> None:
        self.parameters = list(parameters)
        self.squares = [torch.zeros_like(parameter) for parameter in self.parameters]

    @torch.no_grad()
    def step(self) -> None:
        for parameter, square in zip(self.parameters, self.squares, strict=True):
            square.mul_(0.9).addcmul_(parameter.grad, parameter.grad, value=0.1)  # the problem
            parameter.addcdiv_(parameter.grad, square.sqrt().add_(1e-8), value=-0.01)
            parameter.grad = None


torch.manual_seed(0)
net = nn.Sequential(*(nn.Linear(16, 16) for _ in range(30)))
optimizer = RMSProp(net.parameters())
data = torch.randn(8, 16)
for _ in range(60):
    net(data).square().mean().backward()
    optimizer.step()
