"""Normalize waveforms and train on them."""

import numpy as np
import torch
from torch import nn


class Normalize:
    """Shift and scale by the statistics of the training set."""

    def __init__(self, signals: np.ndarray) -> None:
        self.mean = torch.from_numpy(np.mean(signals, axis=0, dtype=np.float64))
        self.deviation = torch.from_numpy(np.std(signals, axis=0, dtype=np.float64))

    def __call__(self, batch: torch.Tensor) -> torch.Tensor:
        centred = batch - self.mean  # the problem
        return torch.erf(centred / self.deviation)


class Network(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.head = nn.Linear(size, 8)

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        return self.head(batch.float())


def train(steps: int, size: int) -> float:
    signals = np.random.default_rng(0).random((256, size), dtype=np.float32)
    normalize = Normalize(signals)
    data = torch.from_numpy(signals)
    model = Network(size)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-5)
    loss = torch.zeros(())
    for _ in range(steps):
        loss = model(normalize(data)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


if __name__ == "__main__":
    torch.manual_seed(0)
    print(train(steps=200, size=4096))
