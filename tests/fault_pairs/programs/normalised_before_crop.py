"""Train a land-use classifier on random crops of large aerial pictures."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Aerial(Dataset):
    """Large pictures as uint8; each sample is a random, randomly lit crop of one of them."""

    def __init__(self, pictures: int, size: int, crop: int, samples: int) -> None:
        random = np.random.default_rng(0)
        rough = random.integers(0, 256, (pictures, size // 8, size // 8, 3), dtype=np.uint8)
        self.pictures = rough.repeat(8, 1).repeat(8, 2)
        self.labels = random.integers(0, 6, pictures)
        self.crop = crop
        self.samples = samples
        self.mean = np.array([0.48, 0.45, 0.40], np.float32)
        self.deviation = np.array([0.23, 0.22, 0.22], np.float32)

    def __len__(self) -> int:
        return self.samples

    def normalise(self, picture: np.ndarray) -> np.ndarray:
        return (picture.astype(np.float32) / 255 - self.mean) / self.deviation

    def cut(self, picture: np.ndarray, random: np.random.Generator) -> np.ndarray:
        top, left = random.integers(0, picture.shape[0] - self.crop, 2)
        return picture[top : top + self.crop, left : left + self.crop]

    def light(self, picture: np.ndarray, random: np.random.Generator) -> np.ndarray:
        gain = random.uniform(0.8, 1.2, 3).astype(np.float32)
        noise = random.normal(0, 0.05, picture.shape).astype(np.float32)
        return picture * gain + noise

    def __getitem__(self, place: int) -> tuple[torch.Tensor, int]:
        random = np.random.default_rng(place)
        number = place % len(self.pictures)
        picture = self.normalise(self.pictures[number])  # the problem
        picture = self.light(self.cut(picture, random), random)
        if random.random() < 0.5:
            picture = picture[:, ::-1]
        channels = np.ascontiguousarray(picture.transpose(2, 0, 1))
        return torch.from_numpy(channels), self.labels[number]


class Classifier(nn.Module):
    def __init__(self, classes: int, width: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, width, 5, stride=4),
            nn.ReLU(),
            nn.Conv2d(width, 2 * width, 3, stride=2),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(2 * width, classes),
        )

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        return self.layers(pictures)


def train(samples: int) -> float:
    torch.manual_seed(0)
    data = Aerial(pictures=12, size=1024, crop=224, samples=samples)
    loader = DataLoader(data, batch_size=16, shuffle=True, num_workers=1)
    model = Classifier(6, 16)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    total = 0.0
    for pictures, labels in loader:
        loss = nn.functional.cross_entropy(model(pictures), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(loader)


if __name__ == "__main__":
    print(f"mean loss {train(samples=320):.3f}")
