"""Train on simulated measurements."""

from collections.abc import Iterator

import numpy as np
import torch
from torch import nn


class Simulation:
    def __init__(self, size: int) -> None:
        self.random = np.random.default_rng(0)
        self.pool = self.random.standard_normal((1024, size))

    def batches(self, count: int) -> Iterator[torch.Tensor]:
        for _ in range(count):
            rows = self.random.integers(0, len(self.pool), 256)
            yield torch.from_numpy(self.pool[rows])  # the problem


class Autoencoder(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(size, 512), nn.ReLU(), nn.Linear(512, 64))
        self.decoder = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, size))

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        return self.decoder(self.encoder(batch))


def main(steps: int) -> None:
    torch.manual_seed(0)
    simulation = Simulation(512)
    model = Autoencoder(512).to(torch.from_numpy(simulation.pool).dtype)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for number, batch in enumerate(simulation.batches(steps)):
        loss = (model(batch) - batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if number % 50 == 0:
            print(number, loss.item())


if __name__ == "__main__":
    main(150)
