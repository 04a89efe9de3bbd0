"""Train on samples that lie in one file of arrays."""

import tempfile
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Recording(Dataset[tuple[torch.Tensor, int]]):
    def __init__(self, path: Path, count: int) -> None:
        self.path = path
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        with np.load(self.path) as file:
            signal = file["signals"][index]  # the problem
        return torch.from_numpy(signal), index % 3


def write_recording(path: Path, count: int) -> None:
    signals = np.random.default_rng(0).random((count, 2000), dtype=np.float32)
    np.savez(path, signals=signals)


def train(path: Path, count: int, epochs: int) -> None:
    model = nn.Sequential(nn.Linear(2000, 32), nn.ReLU(), nn.Linear(32, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = DataLoader(Recording(path, count), batch_size=16, shuffle=True)
    for epoch in range(epochs):
        for signals, classes in loader:
            loss = nn.functional.cross_entropy(model(signals), classes)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "signals.npz"
        write_recording(file, 300)
        train(file, 300, 2)
