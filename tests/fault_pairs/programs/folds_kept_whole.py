"""Cross-validate a regression network on tabular data and report the folds."""

from dataclasses import dataclass

import torch
from torch import nn


def network(features: int, width: int, depth: int) -> nn.Module:
    layers: list[nn.Module] = [nn.Linear(features, width), nn.SiLU()]
    for _ in range(depth):
        layers += [nn.Linear(width, width), nn.SiLU()]
    return nn.Sequential(*layers, nn.Linear(width, 1))


class Trainer:
    """One fold: a fresh network and its optimizer."""

    def __init__(self, features: int, width: int, depth: int, seed: int) -> None:
        torch.manual_seed(seed)
        self.model = network(features, width, depth)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=3e-4)

    def fit(self, inputs: torch.Tensor, targets: torch.Tensor, epochs: int) -> None:
        for _ in range(epochs):
            for part in torch.randperm(len(inputs)).split(256):
                error = self.model(inputs[part])[:, 0] - targets[part]
                loss = error.square().mean()
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()

    @torch.inference_mode()
    def score(self, inputs: torch.Tensor, targets: torch.Tensor) -> float:
        error = self.model(inputs)[:, 0] - targets
        return 1 - float(error.square().mean() / targets.var())


@dataclass
class Fold:
    number: int
    trainer: Trainer
    score: float


def table(rows: int, features: int) -> tuple[torch.Tensor, torch.Tensor]:
    random = torch.Generator().manual_seed(0)
    inputs = torch.randn(rows, features, generator=random)
    targets = inputs[:, 0] * inputs[:, 1] + inputs[:, 2].sin() + inputs[:, 3]
    return inputs, targets + 0.1 * torch.randn(rows, generator=random)


def validate(inputs: torch.Tensor, targets: torch.Tensor, folds: int) -> list[Fold]:
    order = torch.arange(len(inputs)) % folds
    done = []
    for number in range(folds):
        train, test = order != number, order == number
        trainer = Trainer(inputs.shape[1], width=1000, depth=4, seed=number)
        trainer.fit(inputs[train], targets[train], epochs=1)
        score = trainer.score(inputs[test], targets[test])
        done.append(Fold(number, trainer, score))  # the problem
    return done


def main(rows: int, folds: int) -> None:
    results = validate(*table(rows, 32), folds)
    for fold in results:
        print(f"fold {fold.number}: {fold.score:.3f}")
    print(f"mean {sum(fold.score for fold in results) / folds:.3f}")


if __name__ == "__main__":
    main(rows=1500, folds=10)
