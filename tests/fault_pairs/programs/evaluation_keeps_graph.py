"""Evaluate a model and report the mean loss."""

import torch
from torch import nn


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)
        )

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        return self.layers(batch)


def validation_data(batches: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    return [(torch.randn(256, 256), torch.randint(0, 10, (256,))) for _ in range(batches)]


def evaluate(
    model: nn.Module, data: list[tuple[torch.Tensor, torch.Tensor]], repeats: int
) -> float:
    model.eval()
    criterion = nn.CrossEntropyLoss()
    losses = []
    for _ in range(repeats):
        for inputs, classes in data:
            losses.append(criterion(model(inputs), classes))  # the problem
    return torch.stack(losses).mean().item()


def main() -> None:
    torch.manual_seed(0)
    model = Network()
    data = validation_data(30)
    print(f"validation loss {evaluate(model, data, 10):.4f}")


if __name__ == "__main__":
    main()
