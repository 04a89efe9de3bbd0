"""Train and write checkpoints."""

import tempfile
from pathlib import Path

import torch
from torch import nn


class Checkpoints:
    def __init__(self, folder: Path, every: int) -> None:
        self.folder = folder
        self.every = every

    def save(self, step: int, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        if step % self.every == 0:
            state = {"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
            torch.save(state, self.folder / "last.pt")  # the problem


def build() -> nn.Module:
    return nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 256))


def train(folder: Path, steps: int) -> float:
    model = build()
    optimizer = torch.optim.Adam(model.parameters())
    checkpoints = Checkpoints(folder, every=1)
    loss = torch.zeros(())
    for step in range(steps):
        batch = torch.randn(32, 256)
        loss = (model(batch) - batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        checkpoints.save(step, model, optimizer)
    return loss.item()


if __name__ == "__main__":
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as name:
        print(train(Path(name), 200))
