"""Train a classifier of long event sequences, comparable between machines."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import cross_entropy, scaled_dot_product_attention


class Mixer(nn.Module):
    def __init__(self, size: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(size)
        self.project = nn.Linear(size, 3 * size)
        self.out = nn.Linear(size, size)

    def forward(self, events: torch.Tensor) -> torch.Tensor:
        parts = self.project(self.norm(events)).unflatten(-1, (3, self.heads, -1))
        queries, keys, values = parts.permute(2, 0, 3, 1, 4)
        mixed = scaled_dot_product_attention(queries, keys, values)
        return events + self.out(mixed.transpose(1, 2).flatten(2))


class Classifier(nn.Module):
    def __init__(self, features: int, size: int, classes: int) -> None:
        super().__init__()
        self.start = nn.Linear(features, size)
        self.mixers = nn.Sequential(*(Mixer(size, 4) for _ in range(3)))
        self.head = nn.Linear(size, classes)

    def forward(self, events: torch.Tensor) -> torch.Tensor:
        return self.head(self.mixers(self.start(events)).mean(1))


@contextmanager
def comparable(seed: int) -> Iterator[None]:
    torch.manual_seed(seed)
    with sdpa_kernel(SDPBackend.MATH):  # the problem
        yield


class Training:
    def __init__(self, model: Classifier) -> None:
        self.model = model
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    def step(self, events: torch.Tensor, classes: torch.Tensor) -> float:
        loss = cross_entropy(self.model(events), classes)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


def main(steps: int) -> None:
    with comparable(0):
        training = Training(Classifier(12, 64, 5))
        for step in range(steps):
            classes = torch.randint(0, 5, (4,))
            events = torch.randn(4, 1000, 12) + classes[:, None, None] / 4
            loss = training.step(events, classes)
            if step % 5 == 0:
                print(step, f"{loss:.3f}")


if __name__ == "__main__":
    main(5)
