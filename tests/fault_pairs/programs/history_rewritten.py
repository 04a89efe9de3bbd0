"""Train and keep a history file up to date."""

import json
import tempfile
from pathlib import Path

import torch
from torch import nn


class History:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: list[dict[str, float]] = []

    def add(self, **values: float) -> None:
        self.rows.append(values)
        self.path.write_text(json.dumps(self.rows, indent=1))  # the problem

    def close(self) -> int:
        return len(self.rows)


def train(history: History, steps: int) -> None:
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 32))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(steps):
        batch = torch.randn(64, 32)
        loss = (model(batch) - batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.add(step=step, loss=loss.item(), rate=0.01)


if __name__ == "__main__":
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        history = History(Path(folder) / "history.json")
        train(history, 1000)
        print(history.close())
