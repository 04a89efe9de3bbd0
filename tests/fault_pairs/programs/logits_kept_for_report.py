"""Evaluate a tagger of characters on a test set and write a report."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import torch
from torch import nn


class Tagger(nn.Module):
    def __init__(self, letters: int, width: int, tags: int) -> None:
        super().__init__()
        self.letters = nn.Embedding(letters, width)
        self.layers = nn.Sequential(
            nn.Conv1d(width, width, 5, padding=2),
            nn.GELU(),
            nn.Conv1d(width, width, 5, padding=2),
            nn.GELU(),
        )
        self.head = nn.Linear(width, tags)

    def forward(self, letters: torch.Tensor) -> torch.Tensor:
        hidden = self.layers(self.letters(letters).transpose(1, 2))
        return self.head(hidden.transpose(1, 2))


@dataclass
class Evaluation:
    losses: list[float] = field(default_factory=list)
    outputs: list[torch.Tensor] = field(default_factory=list)
    labels: list[torch.Tensor] = field(default_factory=list)

    def add(self, logits: torch.Tensor, labels: torch.Tensor) -> None:
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())
        self.losses.append(loss.item())
        self.outputs.append(logits)  # the problem
        self.labels.append(labels)

    def predictions(self) -> torch.Tensor:
        return torch.cat([output.argmax(-1) for output in self.outputs]).flatten()

    def report(self, tags: int) -> dict[str, float]:
        predicted, wanted = self.predictions(), torch.cat(self.labels).flatten()
        table = torch.bincount(wanted * tags + predicted, minlength=tags * tags)
        table = table.view(tags, tags).double()
        right = table.diagonal()
        recall = right / table.sum(1).clamp(min=1)
        precision = right / table.sum(0).clamp(min=1)
        score = 2 * recall * precision / (recall + precision).clamp(min=1e-9)
        return {
            "loss": sum(self.losses) / len(self.losses),
            "accuracy": float(right.sum() / table.sum()),
            "macro F1": float(score.mean()),
        }


def texts(
    batches: int, batch: int, length: int, letters: int, tags: int
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    random = torch.Generator().manual_seed(0)
    for _ in range(batches):
        text = torch.randint(letters, (batch, length), generator=random)
        yield text, (text + text.roll(1, 1)) % tags


@torch.inference_mode()
def evaluate(model: Tagger, batches: int, tags: int) -> Evaluation:
    evaluation = Evaluation()
    for text, labels in texts(batches, 128, 128, 200, tags):
        evaluation.add(model(text), labels)
    return evaluation


def main(batches: int, tags: int) -> None:
    torch.manual_seed(0)
    model = Tagger(letters=200, width=128, tags=tags).eval()
    evaluation = evaluate(model, batches, tags)
    for name, value in evaluation.report(tags).items():
        print(f"{name} {value:.4f}")


if __name__ == "__main__":
    main(batches=22, tags=560)
