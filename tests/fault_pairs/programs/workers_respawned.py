"""Many short epochs over a small data set with worker processes."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Points(Dataset[tuple[torch.Tensor, torch.Tensor]]):
    def __init__(self, count: int) -> None:
        self.points = torch.randn(count, 16)

    def __len__(self) -> int:
        return len(self.points)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        point = self.points[index]
        return point, point.square().sum()


def make_loader(data: Points) -> DataLoader[tuple[torch.Tensor, torch.Tensor]]:
    return DataLoader(data, batch_size=32, shuffle=True, num_workers=2)


class Fit:
    def __init__(self) -> None:
        self.model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1))
        self.optimizer = torch.optim.Adam(self.model.parameters())

    def epoch(self, loader: DataLoader[tuple[torch.Tensor, torch.Tensor]]) -> float:
        loss = torch.zeros(())
        for points, targets in loader:  # the problem
            loss = (self.model(points)[:, 0] - targets).square().mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        return loss.item()


def main(epochs: int) -> None:
    torch.manual_seed(0)
    loader = make_loader(Points(128))
    fit = Fit()
    for number in range(epochs):
        loss = fit.epoch(loader)
        if number % 10 == 0:
            print(number, loss)


if __name__ == "__main__":
    main(30)
