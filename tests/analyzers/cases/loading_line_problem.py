"""Loads pictures that a transform of one's own changes value by value."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def brighter(picture: list[float]) -> list[float]:
    return [min(max(value * 1.2 - 0.1, 0.0), 1.0) for value in picture]  # the problem


class Pictures(Dataset[torch.Tensor]):
    def __init__(self, count: int) -> None:
        self.pictures = [torch.rand(5000).tolist() for _ in range(count)]

    def __len__(self) -> int:
        return len(self.pictures)

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.tensor(brighter(self.pictures[index]))


torch.manual_seed(0)
net = nn.Linear(5000, 8)
optimizer = torch.optim.SGD(net.parameters(), lr=0.001)
loader = DataLoader(Pictures(250), batch_size=25)
for _ in range(4):
    for batch in loader:
        loss = net(batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
