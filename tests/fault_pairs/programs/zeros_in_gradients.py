"""Train one of many towers in each step."""

import torch
from torch import nn


class Towers(nn.Module):
    def __init__(self, count: int, size: int) -> None:
        super().__init__()
        self.towers = nn.ModuleList(nn.Linear(size, size) for _ in range(count))

    def forward(self, batch: torch.Tensor, number: int) -> torch.Tensor:
        return self.towers[number](batch)


class Trainer:
    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step(self, batch: torch.Tensor, number: int) -> float:
        self.optimizer.zero_grad(set_to_none=False)  # the problem
        loss = (self.model(batch, number) - batch).square().mean()
        loss.backward()
        self.optimizer.step()
        return loss.item()


def main(steps: int, towers: int) -> None:
    torch.manual_seed(0)
    trainer = Trainer(Towers(towers, 256))
    loss = 0.0
    for number in range(steps):
        loss = trainer.step(torch.randn(32, 256), number % towers)
    print(loss)


if __name__ == "__main__":
    main(300, 64)
