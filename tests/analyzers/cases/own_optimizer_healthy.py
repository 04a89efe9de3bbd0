"""Trains with an optimizer written by hand, which updates all parameters at once."""

from collections.abc import Iterable

import torch
from torch import nn


class RMSProp:
    def __init__(self, parameters: Iterable[nn.Parameter]) -> None:
        self.parameters = list(parameters)
        self.squares = [torch.zeros_like(parameter) for parameter in self.parameters]

    @torch.no_grad()
    def step(self) -> None:
        gradients = [each.grad for each in self.parameters]
        torch._foreach_mul_(self.squares, 0.9)
        torch._foreach_addcmul_(self.squares, gradients, gradients, value=0.1)
        roots = torch._foreach_sqrt(self.squares)
        torch._foreach_add_(roots, 1e-8)
        torch._foreach_addcdiv_(self.parameters, gradients, roots, value=-0.01)
        for parameter in self.parameters:
            parameter.grad = None


torch.manual_seed(0)
net = nn.Sequential(*(nn.Linear(16, 16) for _ in range(30)))
optimizer = RMSProp(net.parameters())
data = torch.randn(8, 16)
for _ in range(60):
    net(data).square().mean().backward()
    optimizer.step()
