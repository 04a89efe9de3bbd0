"""Compress the difference of two fine-tuned networks into low-rank adapters and test them."""

import torch
from torch import nn


class Network(nn.Module):
    def __init__(self, inputs: int, width: int, depth: int, classes: int) -> None:
        super().__init__()
        self.inlet = nn.Linear(inputs, width)
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.head = nn.Linear(width, classes)

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        hidden = self.inlet(batch).relu()
        for layer in self.layers:
            hidden = hidden + 0.3 * layer(hidden).relu()
        return self.head(hidden)


class Task:
    def __init__(self, inputs: int, classes: int) -> None:
        self.random = torch.Generator().manual_seed(1)
        self.directions = torch.randn(inputs, classes, generator=self.random)

    def batch(self, size: int) -> tuple[torch.Tensor, torch.Tensor]:
        inputs = torch.randn(size, len(self.directions), generator=self.random)
        return inputs, (inputs @ self.directions).argmax(1)


def tune(model: Network, task: Task, steps: int) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for _ in range(steps):
        inputs, labels = task.batch(64)
        loss = nn.functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def compress(difference: torch.Tensor, rank: int) -> tuple[torch.Tensor, torch.Tensor]:
    left, values, right = torch.linalg.svd(difference)  # the problem
    roots = values[:rank].sqrt()
    return left[:, :rank] * roots, roots[:, None] * right[:rank]


@torch.no_grad()
def adapters(base: Network, tuned: Network, rank: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    return [
        compress(after.weight - before.weight, rank)
        for before, after in zip(base.layers, tuned.layers, strict=True)
    ]


@torch.no_grad()
def apply(base: Network, parts: list[tuple[torch.Tensor, torch.Tensor]]) -> None:
    for layer, (left, right) in zip(base.layers, parts, strict=True):
        layer.weight.add_(left @ right)


@torch.inference_mode()
def accuracy(model: Network, task: Task) -> float:
    inputs, labels = task.batch(1000)
    return (model(inputs).argmax(1) == labels).float().mean().item()


def main(width: int, depth: int, rank: int) -> None:
    torch.manual_seed(0)
    base = Network(64, width, depth, 10)
    tuned = Network(64, width, depth, 10)
    tuned.load_state_dict(base.state_dict())
    task = Task(64, 10)
    tune(tuned, task, steps=20)
    parts = adapters(base, tuned, rank)
    base.inlet, base.head = tuned.inlet, tuned.head
    apply(base, parts)
    print(f"accuracy {accuracy(tuned, task):.2f}, compressed {accuracy(base, task):.2f}")


if __name__ == "__main__":
    main(width=1024, depth=4, rank=16)
