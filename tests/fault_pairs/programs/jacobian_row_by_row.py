"""Report how strongly the outputs of a plant's model react to each of its sensors."""

from dataclasses import dataclass, field

import torch
from torch import nn


class PlantModel(nn.Module):
    def __init__(self, sensors: int, width: int, outputs: int) -> None:
        super().__init__()
        self.mean = nn.Parameter(torch.zeros(sensors), requires_grad=False)
        self.layers = nn.Sequential(
            nn.Linear(sensors, width),
            nn.Tanh(),
            nn.Linear(width, width),
            nn.Tanh(),
            nn.Linear(width, outputs),
        )

    def forward(self, sensors: torch.Tensor) -> torch.Tensor:
        return self.layers(sensors - self.mean)


def slopes(model: PlantModel, sensors: torch.Tensor) -> torch.Tensor:
    """Return the change of each output with each sensor, for each moment."""
    sensors = sensors.requires_grad_()
    outputs = model(sensors)
    rows = []
    for place in range(outputs.shape[1]):
        chosen = outputs[:, place].sum()
        rows.append(torch.autograd.grad(chosen, sensors, retain_graph=True)[0])  # the problem
    return torch.stack(rows)


@dataclass
class Sensitivity:
    moments: int = 0
    squares: list[torch.Tensor] = field(default_factory=list)

    def add(self, change: torch.Tensor) -> None:
        self.moments += change.shape[1]
        self.squares.append(change.square().sum(1))

    def strongest(self, count: int) -> list[int]:
        mean = torch.stack(self.squares).sum(0) / self.moments
        return mean.sum(0).topk(count).indices.tolist()


def evaluate(model: PlantModel, recorded: torch.Tensor, size: int) -> Sensitivity:
    report = Sensitivity()
    model.requires_grad_(False)
    for moments in recorded.split(size):
        report.add(slopes(model, moments))
    return report


if __name__ == "__main__":
    torch.manual_seed(0)
    model = PlantModel(24, 24, 32).eval()
    print(evaluate(model, torch.randn(8000, 24), 8).strongest(5))
