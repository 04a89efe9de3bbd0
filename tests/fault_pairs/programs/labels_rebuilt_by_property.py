from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset


@dataclass
class Sample:
    patient: int
    signal: np.ndarray
    label: int


class Heartbeats(Dataset):
    def __init__(self, samples: list[Sample]) -> None:
        self.samples = samples

    @property
    def labels(self) -> np.ndarray:
        return np.array([sample.label for sample in self.samples])

    @property
    def patients(self) -> np.ndarray:
        return np.array([sample.patient for sample in self.samples])

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return torch.from_numpy(self.samples[index].signal), int(self.labels[index])  # the problem


def make_samples(rng: np.random.Generator, count: int, length: int) -> list[Sample]:
    labels = rng.integers(0, 2, count)
    signals = rng.standard_normal((count, length), dtype=np.float32)
    signals[:, :10] += labels[:, None]
    return [
        Sample(index // 20, signal, int(label))
        for index, (signal, label) in enumerate(zip(signals, labels, strict=True))
    ]


def train(model: nn.Module, loader: DataLoader, weights: torch.Tensor) -> float:
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    total = torch.zeros(())
    for signals, labels in loader:
        loss = functional.cross_entropy(model(signals), labels, weight=weights)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.detach()
    return total.item() / len(loader)


def main(count: int = 10_000, length: int = 180) -> None:
    torch.manual_seed(0)
    data = Heartbeats(make_samples(np.random.default_rng(0), count, length))
    frequency = np.bincount(data.labels, minlength=2) / count
    weights = torch.from_numpy(0.5 / frequency).float()
    loader = DataLoader(data, batch_size=64, shuffle=True)
    model = nn.Sequential(nn.Linear(length, 64), nn.ReLU(), nn.Linear(64, 2))
    loss = train(model, loader, weights)
    print(f"{len(np.unique(data.patients))} patients, loss {loss:.4f}")


if __name__ == "__main__":
    main()
