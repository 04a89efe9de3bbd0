"""Train a recurrent network that carries its state from batch to batch."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.cell = nn.GRU(16, size, batch_first=True)
        self.head = nn.Linear(size, 16)
        self.state = torch.zeros(1, 8, size)

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        outputs, self.state = self.cell(batch, self.state)
        return self.head(outputs)


class Trainer:
    def __init__(self, size: int) -> None:
        self.model = Model(size)

    def step(self, batch: torch.Tensor) -> float:
        loss = (self.model(batch[:, :-1]) - batch[:, 1:]).square().mean()
        loss.backward(retain_graph=True)  # the problem
        for parameter in self.model.parameters():
            parameter.data -= 0.01 * parameter.grad
            parameter.grad = None
        return loss.item()


def main(steps: int) -> None:
    torch.manual_seed(0)
    trainer = Trainer(64)
    for step in range(steps):
        loss = trainer.step(torch.randn(8, 11, 16))
        if step % 20 == 0:
            print(step, loss)


if __name__ == "__main__":
    main(60)
