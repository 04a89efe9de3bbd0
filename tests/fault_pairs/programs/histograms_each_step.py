"""Train a classifier and watch its weights and gradients while it learns."""

import json
import tempfile
from pathlib import Path
from typing import TextIO

import torch
from torch import nn


def network(inputs: int, width: int, depth: int, classes: int) -> nn.Module:
    layers: list[nn.Module] = [nn.Linear(inputs, width), nn.ReLU()]
    for _ in range(depth):
        layers += [nn.Linear(width, width), nn.LayerNorm(width), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(width, classes))


class Watch:
    """Writes histograms of weights and gradients to the log of the run."""

    def __init__(self, model: nn.Module, log: TextIO, every: int) -> None:
        self.model = model
        self.log = log
        self.every = every

    def histogram(self, values: torch.Tensor) -> dict[str, list[float]]:
        counts, edges = torch.histogram(values, 64)
        return {"counts": counts.tolist(), "edges": edges.tolist()}

    def after(self, step: int) -> None:
        if step % self.every:
            return
        record = {}
        for name, weight in self.model.named_parameters():
            record[name] = self.histogram(weight.detach())
            record[f"{name} slope"] = self.histogram(weight.grad)
        self.log.write(json.dumps({"step": step, **record}) + "\n")


class Blobs:
    def __init__(self, features: int, classes: int) -> None:
        self.random = torch.Generator().manual_seed(0)
        self.centers = torch.randn(classes, features, generator=self.random)

    def batch(self, size: int) -> tuple[torch.Tensor, torch.Tensor]:
        labels = torch.randint(len(self.centers), (size,), generator=self.random)
        noise = torch.randn(size, self.centers.shape[1], generator=self.random)
        return self.centers[labels] + 2 * noise, labels


def train(log: TextIO, steps: int) -> float:
    torch.manual_seed(0)
    model = network(64, 256, 3, 20)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    watch = Watch(model, log, every=1)  # the problem
    blobs = Blobs(64, 20)
    total = 0.0
    for step in range(steps):
        inputs, labels = blobs.batch(256)
        loss = nn.functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        watch.after(step)
        optimizer.step()
        total += loss.item()
    return total / steps


def main(steps: int) -> None:
    with tempfile.TemporaryDirectory() as folder, (Path(folder) / "run.jsonl").open("w") as log:
        print(f"mean loss {train(log, steps):.4f}")


if __name__ == "__main__":
    main(steps=300)
