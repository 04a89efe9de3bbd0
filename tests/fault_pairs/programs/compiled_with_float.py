"""Train with a compiled step and a learning rate schedule."""

import torch
from torch import nn


def schedule(step: int) -> float:
    return 0.01 / (1 + step)


def update(weight: torch.Tensor, gradient: torch.Tensor, rate: float) -> torch.Tensor:
    decayed = weight * (1 - 0.01 * rate)
    return decayed - rate * gradient / (gradient.norm() + 1e-6)


class Trainer:
    def __init__(self, size: int) -> None:
        self.weight = torch.randn(size, size)
        self.update = torch.compile(update, backend="aot_eager", dynamic=False)

    def step(self, number: int) -> float:
        weight = self.weight.requires_grad_()
        batch = torch.randn(16, len(weight))
        loss = nn.functional.mse_loss(batch @ weight, batch)
        (gradient,) = torch.autograd.grad(loss, weight)
        with torch.no_grad():
            self.weight = self.update(weight.detach(), gradient, schedule(number))  # the problem
        return loss.item()


def main(steps: int) -> None:
    torch.manual_seed(0)
    torch._dynamo.config.recompile_limit = 100
    trainer = Trainer(64)
    losses = [trainer.step(number) for number in range(steps)]
    print(losses[-1])


if __name__ == "__main__":
    main(40)
