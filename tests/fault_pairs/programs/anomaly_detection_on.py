"""Train a deep network of narrow layers."""

import torch
from torch import nn


def configure() -> None:
    torch.manual_seed(0)
    torch.autograd.set_detect_anomaly(True)


class Narrow(nn.Module):
    def __init__(self, depth: int, size: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(size, size) for _ in range(depth))

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            batch = batch + torch.tanh(layer(batch))
        return batch


def train_step(model: nn.Module, optimizer: torch.optim.Optimizer) -> torch.Tensor:
    batch = torch.randn(64, 32)
    loss = (model(batch) - batch).square().mean()
    optimizer.zero_grad()
    loss.backward()  # the problem
    optimizer.step()
    return loss


def main(steps: int) -> None:
    configure()
    model = Narrow(40, 32)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(steps):
        loss = train_step(model, optimizer)
        if step % 50 == 0:
            print(step, loss.item())


if __name__ == "__main__":
    main(150)
