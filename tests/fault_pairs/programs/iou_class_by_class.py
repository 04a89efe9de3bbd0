"""Evaluate a segmentation model: the overlap of each class over a validation set."""

from collections.abc import Iterator

import torch
from torch import nn

Batch = tuple[torch.Tensor, torch.Tensor]


class Segmenter(nn.Module):
    """Scores on a coarse grid; a cell's best class holds for all of its pixels."""

    def __init__(self, classes: int, cell: int) -> None:
        super().__init__()
        self.cell = cell
        self.layers = nn.Sequential(
            nn.Conv2d(3, 32, cell, stride=cell), nn.ReLU(), nn.Conv2d(32, classes, 1)
        )

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        found = self.layers(pictures).argmax(1)
        return found.repeat_interleave(self.cell, 1).repeat_interleave(self.cell, 2)


class Validation:
    def __init__(self, pictures: int, classes: int, side: int) -> None:
        self.pictures = torch.rand(pictures, 3, side, side)
        self.masks = torch.randint(0, classes, (pictures, side, side))

    def batches(self, size: int) -> Iterator[Batch]:
        yield from zip(self.pictures.split(size), self.masks.split(size), strict=True)


class Overlap:
    def __init__(self, classes: int) -> None:
        self.classes = classes
        self.both = torch.zeros(classes, dtype=torch.long)
        self.either = torch.zeros(classes, dtype=torch.long)

    def add(self, found: torch.Tensor, masks: torch.Tensor) -> None:
        for number in range(self.classes):
            there, wanted = found == number, masks == number  # the problem
            self.both[number] += (there & wanted).sum()
            self.either[number] += (there | wanted).sum()

    def mean(self) -> float:
        return float((self.both / self.either.clamp(min=1)).mean())


@torch.inference_mode()
def evaluate(model: Segmenter, validation: Validation, classes: int) -> float:
    overlap = Overlap(classes)
    for pictures, masks in validation.batches(8):
        overlap.add(model(pictures), masks)
    return overlap.mean()


def main(classes: int, cells: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    validation = Validation(40, classes, 192)
    for cell in cells:
        model = Segmenter(classes, cell).eval()
        print(cell, f"overlap {evaluate(model, validation, classes):.5f}")


if __name__ == "__main__":
    main(150, (8, 16))
