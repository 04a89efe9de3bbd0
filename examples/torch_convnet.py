"""Train a residual convolutional network to tell drawn shapes apart.

The images are drawn by the data set itself (discs, squares, crosses under noise), so that loading
and augmenting cost something, as they do in real programs.
"""

from __future__ import annotations

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SIZE = 32
SHAPES = ("disc", "square", "cross")


class Shapes(Dataset[tuple[torch.Tensor, int]]):
    """One-channel images of shape (1, 32, 32) and the index of the drawn shape."""

    def __init__(self, count: int) -> None:
        self.count = count
        axis = torch.arange(SIZE).float()
        self.y, self.x = torch.meshgrid(axis, axis, indexing="ij")

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        if not 0 <= index < self.count:
            raise IndexError(index)
        generator = torch.Generator().manual_seed(index)
        label = index % len(SHAPES)
        centre = torch.randint(10, SIZE - 10, (2,), generator=generator)
        dy, dx = (self.y - centre[0]).abs(), (self.x - centre[1]).abs()
        if SHAPES[label] == "disc":
            image = dy.square() + dx.square() < 49
        elif SHAPES[label] == "square":
            image = torch.maximum(dy, dx) < 6
        else:
            image = (torch.minimum(dy, dx) < 2) & (torch.maximum(dy, dx) < 9)
        noise = 0.3 * torch.randn(SIZE, SIZE, generator=generator)
        return (image.float() + noise).unsqueeze(0), label


class Residual(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        return torch.relu(x + y)


class ConvNet(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.stem = nn.Conv2d(1, channels, 3, stride=2, padding=1)
        self.layer1 = Residual(channels)
        self.down = nn.Conv2d(channels, 2 * channels, 3, stride=2, padding=1)
        self.layer2 = Residual(2 * channels)
        self.head = nn.Linear(2 * channels, len(SHAPES))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        x = self.layer1(torch.relu(self.stem(images)))
        x = self.layer2(torch.relu(self.down(x)))
        return self.head(x.mean(dim=(2, 3)))


def train_epoch(
    model: ConvNet, loader: DataLoader[tuple[torch.Tensor, int]], optimizer: torch.optim.Optimizer
) -> float:
    """Return the share of right answers during the epoch, between 0 and 1."""
    model.train()
    correct = seen = 0
    for images, labels in loader:
        optimizer.zero_grad()
        scores = model(images)
        loss = nn.functional.cross_entropy(scores, labels)
        loss.backward()
        optimizer.step()
        correct += int((scores.argmax(dim=1) == labels).sum())
        seen += len(labels)
    return correct / seen


def main() -> None:
    parser = argparse.ArgumentParser(description="Train a small residual network on drawn shapes.")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--images", type=int, default=768)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--channels", type=int, default=16)
    parser.add_argument("--workers", type=int, default=0, help="DataLoader worker processes")
    parser.add_argument("--threads", type=int, default=1, help="threads inside an operator")
    options = parser.parse_args()

    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    loader = DataLoader(
        Shapes(options.images),
        batch_size=options.batch_size,
        shuffle=True,
        num_workers=options.workers,
    )
    model = ConvNet(options.channels)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(options.epochs):
        print(f"epoch {epoch}  accuracy {train_epoch(model, loader, optimizer):.1%}")


if __name__ == "__main__":
    main()
