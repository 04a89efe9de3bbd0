"""Write the features of each picture into its own file, then train a probe on them."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import nn


class Backbone(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, width, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, stride=2, padding=1),
            nn.ReLU(),
        )

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        return self.layers(pictures)


def pictures(count: int, batch: int) -> Iterator[tuple[list[str], torch.Tensor]]:
    random = torch.Generator().manual_seed(0)
    for start in range(0, count, batch):
        names = [f"picture-{start + place:05d}" for place in range(batch)]
        yield names, torch.rand(batch, 3, 64, 64, generator=random)


class FeatureStore:
    """One file for each picture, so that experiments can pick what they need."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, name: str) -> Path:
        return self.folder / f"{name}.pt"

    def write(self, names: list[str], features: torch.Tensor) -> None:
        for name, feature in zip(names, features, strict=True):
            torch.save({"name": name, "feature": feature}, self.path(name))  # the problem

    def read(self, name: str) -> torch.Tensor:
        return torch.load(self.path(name))["feature"]


@torch.inference_mode()
def extract(store: FeatureStore, count: int, batch: int) -> list[str]:
    torch.manual_seed(0)
    backbone = Backbone(32).eval()
    written = []
    for names, batch_of_pictures in pictures(count, batch):
        store.write(names, backbone(batch_of_pictures))
        written += names
    return written


def probe(store: FeatureStore, names: list[str], epochs: int) -> float:
    head = nn.Linear(32, 10)
    optimizer = torch.optim.AdamW(head.parameters(), lr=1e-2)
    loss = torch.zeros(())
    features = torch.stack([store.read(name).mean((1, 2)) for name in names])
    labels = torch.arange(len(names)) % 10
    for _ in range(epochs):
        for part in torch.randperm(len(names)).split(64):
            loss = nn.functional.cross_entropy(head(features[part]), labels[part])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return loss.item()


def main(count: int, batch: int, epochs: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = FeatureStore(Path(folder))
        names = extract(store, count, batch)
        print(f"loss {probe(store, names, epochs):.3f}")


if __name__ == "__main__":
    main(count=960, batch=64, epochs=40)
