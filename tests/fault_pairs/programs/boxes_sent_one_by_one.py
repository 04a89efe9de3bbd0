"""Train a detector that looks for the objects of small pictures in a grid of cells."""

from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

Target = dict[str, torch.Tensor]


class Scenes(Dataset[tuple[torch.Tensor, Target]]):
    def __init__(self, scenes: int) -> None:
        self.pictures = torch.randint(0, 256, (scenes, 3, 48, 48), dtype=torch.uint8)
        self.counts = torch.randint(1, 9, (scenes,))

    def __len__(self) -> int:
        return len(self.pictures)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, Target]:
        count = int(self.counts[index])
        corners = torch.rand(count, 4)
        target = {
            "boxes": corners,
            "classes": torch.randint(0, 8, (count,)),
            "area": (corners[:, 2] - corners[:, 0]) * (corners[:, 3] - corners[:, 1]),
            "crowd": torch.zeros(count, dtype=torch.bool),
            "picture": torch.full((count,), index),
            "size": torch.full((count, 2), 48),
        }
        return self.pictures[index], target


def collate(samples: list[tuple[torch.Tensor, Target]]) -> Any:
    pictures, targets = zip(*samples, strict=True)
    return torch.stack(pictures), list(targets)  # the problem


class Detector(nn.Module):
    def __init__(self, classes: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 8, 5, stride=4), nn.ReLU(), nn.Conv2d(8, classes, 3, stride=2)
        )

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        return self.layers(pictures.float() / 255)


def cells(targets: list[Target], shape: torch.Size) -> torch.Tensor:
    wanted = torch.zeros(shape)
    pictures = torch.arange(len(targets)).repeat_interleave(
        torch.tensor([len(target["boxes"]) for target in targets])
    )
    boxes = torch.cat([target["boxes"] for target in targets])
    classes = torch.cat([target["classes"] for target in targets])
    rows, columns = (boxes[:, :2] * shape[-1]).long().T
    wanted[pictures, classes, rows, columns] = 1
    return wanted


def train(dataset: Scenes, epochs: int) -> None:
    loader = DataLoader(
        dataset, 64, collate_fn=collate, num_workers=2, persistent_workers=True, shuffle=True
    )
    model = Detector(8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(epochs):
        total = 0.0
        for pictures, targets in loader:
            scores = model(pictures)
            loss = nn.functional.binary_cross_entropy_with_logits(
                scores, cells(targets, scores.shape)
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(epoch, f"{total:.3f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    train(Scenes(1500), 2)
