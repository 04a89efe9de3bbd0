"""Train and log details for debugging."""

import logging

import torch
from torch import nn

logger = logging.getLogger("training")


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64))

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        output = self.layers(batch)
        logger.debug(f"input {batch} output {output}")  # the problem
        return output


def step(model: nn.Module, optimizer: torch.optim.Optimizer) -> torch.Tensor:
    batch = torch.randn(64, 64)
    loss = (model(batch) - batch).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


def main(steps: int) -> None:
    torch.manual_seed(0)
    logging.basicConfig(level=logging.INFO)
    model = Network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for number in range(steps):
        loss = step(model, optimizer)
        if number % 200 == 0:
            logger.info("step %d: loss %s", number, loss.item())


if __name__ == "__main__":
    main(600)
