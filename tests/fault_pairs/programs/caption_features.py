"""Extracts one feature file per picture with a convolutional network."""
import os
import tempfile

import torch
import torch.nn as nn

torch.set_num_threads(1)
torch.manual_seed(0)

PICTURES = 512
BATCH = 128


class FeatureNet(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, width, 5, stride=2, padding=2),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(width, 96, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(12),
        )

    def forward(self, x):
        return self.layers(x)


class PictureSource:
    def __init__(self, count, side=64, seed=0):
        self.count = count
        self.side = side
        self.gen = torch.Generator().manual_seed(seed)

    def batches(self, size):
        for start in range(0, self.count, size):
            n = min(size, self.count - start)
            names = [f"img_{start + i:05d}" for i in range(n)]
            yield names, torch.rand(n, 3, self.side, self.side, generator=self.gen)


class FeatureStore:
    """A folder with one file for each picture, read back by the caption model."""

    def __init__(self, folder):
        self.folder = folder

    def path(self, name):
        return os.path.join(self.folder, name + ".pt")

    def write(self, name, feature):
        torch.save(feature, self.path(name))  # the problem

    def read(self, name):
        return torch.load(self.path(name))


@torch.no_grad()
def extract(model, source, store):
    names = []
    for batch_names, pictures in source.batches(BATCH):
        features = model(pictures)
        for name, feature in zip(batch_names, features):
            store.write(name, feature)
        names.extend(batch_names)
    return names


def average_feature(store, names):
    total = torch.zeros(96, 12, 12)
    for name in names:
        total += store.read(name)
    return total / len(names)


def main():
    model = FeatureNet().eval()
    with tempfile.TemporaryDirectory() as folder:
        store = FeatureStore(folder)
        names = extract(model, PictureSource(PICTURES), store)
        print(f"wrote {len(names)} files")
        mean = average_feature(store, names)
    print(f"final {float(mean.norm()):.4f}")


if __name__ == "__main__":
    main()
