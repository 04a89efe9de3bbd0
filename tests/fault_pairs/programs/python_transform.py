"""Train an image classifier on augmented pictures."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class RandomContrast:
    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)

    def __call__(self, picture: np.ndarray) -> np.ndarray:
        factor = self.random.uniform(0.5, 1.5)
        changed = np.empty_like(picture)
        for row in range(picture.shape[0]):
            for column in range(picture.shape[1]):
                value = (picture[row, column] - 0.5) * factor + 0.5  # the problem
                changed[row, column] = min(max(value, 0.0), 1.0)
        return changed


class Pictures(Dataset[tuple[torch.Tensor, int]]):
    def __init__(self, count: int) -> None:
        self.pixels = np.random.default_rng(0).random((count, 48, 48), dtype=np.float32)
        self.transform = RandomContrast(1)

    def __len__(self) -> int:
        return len(self.pixels)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        picture = self.transform(self.pixels[index])
        return torch.from_numpy(picture)[None], index % 10


def network() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, stride=2),
        nn.ReLU(),
        nn.Conv2d(8, 16, 3, stride=2),
        nn.ReLU(),
        nn.Flatten(),
        nn.LazyLinear(10),
    )


def train(epochs: int) -> None:
    model = network()
    loader = DataLoader(Pictures(600), batch_size=32, shuffle=True)
    model(next(iter(loader))[0])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(epochs):
        for pictures, classes in loader:
            loss = nn.functional.cross_entropy(model(pictures), classes)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    torch.manual_seed(0)
    train(2)
