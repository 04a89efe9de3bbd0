"""Sorts pictures by the text that suits them best, whose features are computed once."""

import torch
from torch import nn


class Texts(nn.Module):
    def __init__(self, words: int, width: int) -> None:
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.read = nn.Sequential(
            nn.Linear(width, 4 * width), nn.ReLU(), nn.Linear(4 * width, width)
        )
        self.project = nn.Sequential(
            nn.Linear(width, 4 * width), nn.Tanh(), nn.Linear(4 * width, width)
        )

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.project(self.read(self.words(tokens))).mean(1)


class Pictures(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 32, 5, stride=2), nn.ReLU(), nn.Conv2d(32, width, 5, stride=4), nn.ReLU()
        )

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        return self.layers(pictures).mean((2, 3))


@torch.inference_mode()
def sort(batches: int) -> int:
    texts, pictures = Texts(1000, 128).eval(), Pictures(128).eval()
    labels = torch.randint(1000, (120, 40))
    words = texts(labels)
    found = 0
    for _ in range(batches):
        seen = pictures(torch.randn(8, 3, 96, 96))
        found += int((seen @ words.T).argmax(1).sum())
    return found


torch.manual_seed(0)
sort(100)
