"""Train on a set of pictures that is held in memory."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import nn

Batch = tuple[torch.Tensor, torch.Tensor]


def write_pictures(path: Path, count: int) -> None:
    random = np.random.default_rng(0)
    np.save(path, random.integers(0, 256, (count, 3, 40, 40), dtype=np.uint8))


class Pictures:
    def __init__(self, path: Path) -> None:
        pixels = torch.from_numpy(np.load(path))
        self.pixels = pixels.float().div_(255)  # the problem
        self.classes = torch.arange(len(pixels)) % 10

    def batches(self, size: int) -> Iterator[Batch]:
        for chosen in torch.randperm(len(self.pixels)).split(size):
            yield self.pixels[chosen], self.classes[chosen]


def build() -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(3, 16, 5, stride=4),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(32, 10),
    )


def train(model: nn.Module, pictures: Pictures) -> float:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loss = torch.zeros(())
    for pixels, classes in pictures.batches(256):
        loss = nn.functional.cross_entropy(model(pixels), classes)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def main(count: int, epochs: int) -> None:
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pictures.npy"
        write_pictures(path, count)
        pictures = Pictures(path)
        model = build()
        for epoch in range(epochs):
            print(f"epoch {epoch}: loss {train(model, pictures):.4f}")


if __name__ == "__main__":
    main(24_000, 2)
