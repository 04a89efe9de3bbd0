"""Train an autoencoder of point clouds with the Chamfer distance."""

import torch
from torch import nn


class Autoencoder(nn.Module):
    def __init__(self, points: int, width: int, code: int) -> None:
        super().__init__()
        self.points = points
        self.encode = nn.Sequential(nn.Linear(3, width), nn.ReLU(), nn.Linear(width, code))
        self.decode = nn.Sequential(
            nn.Linear(code, 4 * width), nn.ReLU(), nn.Linear(4 * width, 3 * points)
        )

    def forward(self, cloud: torch.Tensor) -> torch.Tensor:
        code = self.encode(cloud).amax(1)
        return self.decode(code).view(-1, self.points, 3)


def distances(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    return (first[:, :, None] - second[:, None]).norm(dim=-1)  # the problem


def chamfer(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    apart = distances(first, second)
    return apart.amin(1).mean() + apart.amin(2).mean()


class Shapes:
    """Boxes and ellipsoids of random sizes."""

    def __init__(self, points: int) -> None:
        self.random = torch.Generator().manual_seed(0)
        self.points = points

    def batch(self, size: int) -> torch.Tensor:
        directions = torch.randn(size, self.points, 3, generator=self.random)
        sizes = 0.5 + torch.rand(size, 1, 3, generator=self.random)
        ball = directions / directions.norm(dim=-1, keepdim=True)
        box = directions / directions.abs().amax(-1, keepdim=True)
        which = torch.rand(size, 1, 1, generator=self.random) < 0.5
        return torch.where(which, ball, box) * sizes


def train(steps: int, batch: int, points: int) -> float:
    torch.manual_seed(0)
    model = Autoencoder(points, 128, 64)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    shapes = Shapes(points)
    total = 0.0
    for _ in range(steps):
        cloud = shapes.batch(batch)
        loss = chamfer(model(cloud), cloud)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / steps


if __name__ == "__main__":
    print(f"mean loss {train(steps=14, batch=8, points=1024):.4f}")
