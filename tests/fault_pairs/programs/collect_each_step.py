"""Train a small network on a large set of records."""

import gc

import torch
from torch import nn


class Record:
    def __init__(self, number: int) -> None:
        self.values = [number, number + 1]
        self.name = f"record {number}"


class Data:
    def __init__(self, count: int) -> None:
        self.records = [Record(number) for number in range(count)]

    def batch(self, start: int, size: int) -> torch.Tensor:
        chosen = self.records[start % len(self.records) :][:size]
        return torch.tensor([record.values for record in chosen], dtype=torch.float32) / 1000


def cleanup() -> None:
    gc.collect()  # the problem


def train(steps: int) -> float:
    data = Data(100_000)
    model = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    loss = torch.zeros(())
    for step in range(steps):
        batch = data.batch(step * 16, 16)
        loss = (model(batch)[:, 0] - batch[:, 0]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if not step % 4:
            cleanup()
    return loss.item()


if __name__ == "__main__":
    torch.manual_seed(0)
    print(train(120))
