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
        for parameter, first, second in zip(self.parameters, self.first, self.second, strict=True):
            gradient = parameter.grad
            first.mul_(0.9).add_(gradient, alpha=0.1)  # the problem
            second.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
            parameter.addcdiv_(first, second.sqrt().add_(1e-8), value=-scale)

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
