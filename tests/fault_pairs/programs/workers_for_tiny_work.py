"""Regression on a small table, loaded with workers."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Table(Dataset[tuple[torch.Tensor, torch.Tensor]]):
    def __init__(self, rows: int) -> None:
        self.inputs = torch.randn(rows, 8)
        self.targets = self.inputs.sum(1)

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self.inputs[index], self.targets[index]


def loader_of(table: Table) -> DataLoader[tuple[torch.Tensor, torch.Tensor]]:
    return DataLoader(table, batch_size=8, shuffle=True, num_workers=2, persistent_workers=True)


def train(table: Table, epochs: int) -> nn.Module:
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = loader_of(table)
    for epoch in range(epochs):
        for inputs, targets in loader:  # the problem
            loss = (model(inputs)[:, 0] - targets).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())
    return model


if __name__ == "__main__":
    torch.manual_seed(0)
    train(Table(4000), 2)
