"""Train with large batches that are handled in parts."""

from collections.abc import Iterator

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(size)
        self.layers = nn.Sequential(nn.Linear(size, 2 * size), nn.GELU(), nn.Linear(2 * size, size))

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        return values + self.layers(self.norm(values))


class Encoder(nn.Module):
    def __init__(self, size: int, depth: int) -> None:
        super().__init__()
        self.blocks = nn.Sequential(*(Block(size) for _ in range(depth)))
        self.head = nn.Linear(size, size)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        return self.head(self.blocks(values))


class Trainer:
    def __init__(self, model: nn.Module, parts: int) -> None:
        self.model = model
        self.parts = parts
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    def step(self, batch: torch.Tensor) -> float:
        self.optimizer.zero_grad()
        total = torch.zeros(())
        for part in batch.chunk(self.parts):
            loss = nn.functional.mse_loss(self.model(part), part.roll(1, -1))
            total = total + loss / self.parts  # the problem
        total.backward()
        self.optimizer.step()
        return total.item()


def batches(steps: int, rows: int, size: int) -> Iterator[torch.Tensor]:
    for _ in range(steps):
        yield torch.randn(rows, size)


def main(steps: int) -> None:
    torch.manual_seed(0)
    trainer = Trainer(Encoder(128, 6), 16)
    losses = [trainer.step(batch) for batch in batches(steps, 16_384, 128)]
    print("losses", [round(loss, 4) for loss in losses])


if __name__ == "__main__":
    main(3)
