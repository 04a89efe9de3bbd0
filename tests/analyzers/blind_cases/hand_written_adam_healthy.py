"""Train a deep, narrow network with an optimizer of one's own."""

import math

import torch
from torch import nn


class Adam:
    """Adam, as in the paper; not a torch.optim.Optimizer."""

    def __init__(self, parameters: list[torch.Tensor], rate: float) -> None:
        self.parameters = parameters
        self.rate = rate
        self.count = 0
        self.first = [torch.zeros_like(parameter) for parameter in parameters]
        self.second = [torch.zeros_like(parameter) for parameter in parameters]

    @torch.no_grad()
    def step(self) -> None:
        self.count += 1
        scale = self.rate * math.sqrt(1 - 0.999**self.count) / (1 - 0.9**self.count)
        gradients = [parameter.grad for parameter in self.parameters]
        torch._foreach_lerp_(self.first, gradients, 0.1)
        torch._foreach_mul_(self.second, 0.999)
        torch._foreach_addcmul_(self.second, gradients, gradients, value=0.001)
        divisors = torch._foreach_sqrt(self.second)
        torch._foreach_add_(divisors, 1e-8)
        torch._foreach_addcdiv_(self.parameters, self.first, divisors, value=-scale)

    def zero_grad(self) -> None:
        for parameter in self.parameters:
            parameter.grad = None


def narrow_network(depth: int, width: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for _ in range(depth):
        layers += [nn.Linear(width, width), nn.Tanh()]
    return nn.Sequential(*layers, nn.Linear(width, 1))


def main(steps: int) -> None:
    torch.manual_seed(0)
    model = narrow_network(depth=80, width=16)
    optimizer = Adam(list(model.parameters()), 1e-3)
    for step in range(steps):
        batch = torch.randn(32, 16)
        loss = (model(batch) - batch.sum(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(step, loss.item())


if __name__ == "__main__":
    main(400)
