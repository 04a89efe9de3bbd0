"""Train on samples that lie in a store in the network."""

import time
from dataclasses import dataclass

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


@dataclass(frozen=True)
class Store:
    """Stands for an object store: each answer takes one way there and back."""

    latency_s: float

    def get(self, key: int) -> torch.Tensor:
        time.sleep(self.latency_s)
        return torch.randn(3, 24, 24, generator=torch.Generator().manual_seed(key))


class Pictures(Dataset[tuple[torch.Tensor, int]]):
    def __init__(self, store: Store, count: int) -> None:
        self.store = store
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return self.store.get(index), index % 5


def build() -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(32, 96, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(96, 5),
    )


def train(dataset: Pictures, epochs: int) -> None:
    model = build()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = DataLoader(dataset, batch_size=32)  # the problem
    for epoch in range(epochs):
        for pictures, classes in loader:
            loss = nn.functional.cross_entropy(model(pictures), classes)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.4f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    train(Pictures(Store(0.003), 320), 3)
