"""Train on sequences of different lengths; the batches are padded."""

import random

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Sequences(Dataset[torch.Tensor]):
    def __init__(self, count: int) -> None:
        chooser = random.Random(0)
        self.items = [torch.randint(1, 500, (chooser.randint(700, 1000),)) for _ in range(count)]

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> torch.Tensor:
        return self.items[index]


def pad(samples: list[torch.Tensor]) -> torch.Tensor:
    longest = max(len(sample) for sample in samples)
    rows = []
    for sample in samples:
        row = [int(token) for token in sample]  # the problem
        rows.append(row + [0] * (longest - len(row)))
    return torch.tensor(rows)


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(500, 16, padding_idx=0)
        self.head = nn.Linear(16, 2)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.embedding(tokens).mean(1))


def train(epochs: int) -> None:
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(Sequences(400), batch_size=16, collate_fn=pad)
    for epoch in range(epochs):
        for batch in loader:
            loss = model(batch).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    torch.manual_seed(0)
    train(6)
