"""Train an autoencoder and plot its error afterwards."""

import torch
from torch import nn


class Metrics:
    def __init__(self) -> None:
        self.errors: list[torch.Tensor] = []

    def log(self, reconstruction: torch.Tensor, batch: torch.Tensor) -> None:
        self.errors.append((reconstruction - batch).abs().mean())  # the problem

    def summary(self) -> str:
        values = [float(error) for error in self.errors]
        return f"first {values[0]:.4f} last {values[-1]:.4f}"


class Autoencoder(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.encoder = nn.Linear(size, 32)
        self.decoder = nn.Linear(32, size)

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        return self.decoder(torch.relu(self.encoder(batch)))


class Trainer:
    def __init__(self, size: int) -> None:
        self.model = Autoencoder(size)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        self.metrics = Metrics()

    def step(self, batch: torch.Tensor) -> None:
        reconstruction = self.model(batch)
        loss = nn.functional.mse_loss(reconstruction, batch)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.metrics.log(reconstruction, batch)


if __name__ == "__main__":
    torch.manual_seed(0)
    trainer = Trainer(1024)
    for _ in range(300):
        trainer.step(torch.rand(256, 1024))
    print(trainer.metrics.summary())
