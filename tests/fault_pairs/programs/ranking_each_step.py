"""Evaluate a click model; a line of progress shows how well it ranks."""

from collections.abc import Iterator

import torch
from torch import nn


class Ranking:
    """Area under the curve of all scores so far."""

    def __init__(self, capacity: int) -> None:
        self.scores = torch.empty(capacity)
        self.clicked = torch.empty(capacity, dtype=torch.bool)
        self.count = 0

    def update(self, scores: torch.Tensor, clicked: torch.Tensor) -> None:
        part = slice(self.count, self.count + len(scores))
        self.scores[part] = scores
        self.clicked[part] = clicked
        self.count += len(scores)

    def compute(self) -> float:
        order = self.scores[: self.count].argsort()
        clicked = self.clicked[: self.count][order]
        ranks = torch.arange(1, self.count + 1, dtype=torch.float64)
        hits = int(clicked.sum())
        misses = self.count - hits
        above = ranks[clicked].sum().item() - hits * (hits + 1) / 2
        return above / max(1, hits * misses)


class Progress:
    def __init__(self, total: int) -> None:
        self.total = total

    def show(self, step: int, value: float) -> None:
        if (step + 1) % (self.total // 5) == 0:
            print(f"{step + 1}/{self.total}: {value:.4f}")


def batches(count: int, size: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    for _ in range(count):
        features = torch.randn(size, 64)
        yield features, features[:, 0] + torch.randn(size) > 0


@torch.inference_mode()
def evaluate(model: nn.Module, count: int, size: int) -> float:
    ranking, progress = Ranking(count * size), Progress(count)
    model.eval()
    value = 0.0
    for step, (features, clicked) in enumerate(batches(count, size)):
        ranking.update(model(features).squeeze(-1), clicked)
        value = ranking.compute()  # the problem
        progress.show(step, value)
    return value


def main(count: int) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 1))
    print(f"ranking {evaluate(model, count, 1024):.4f}")


if __name__ == "__main__":
    main(250)
