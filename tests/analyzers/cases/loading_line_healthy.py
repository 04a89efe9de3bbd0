"""Loads pictures that a transform of one's own changes as a whole, for a network that is not tiny."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def brighter(picture: torch.Tensor) -> torch.Tensor:
    return (picture * 1.2 - 0.1).clamp(0.0, 1.0)


class Pictures(Dataset[torch.Tensor]):
    def __init__(self, count: int) -> None:
        self.pictures = [torch.rand(5000) for _ in range(count)]

    def __len__(self) -> int:
        return len(self.pictures)

    def __getitem__(self, index: int) -> torch.Tensor:
        return brighter(self.pictures[index])


torch.manual_seed(0)
net = nn.Sequential(nn.Linear(5000, 512), nn.ReLU(), nn.Linear(512, 8))
optimizer = torch.optim.SGD(net.parameters(), lr=0.001)
loader = DataLoader(Pictures(250), batch_size=25)
for _ in range(4):
    for batch in loader:
        loss = net(batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
