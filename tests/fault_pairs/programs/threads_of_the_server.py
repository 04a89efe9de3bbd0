"""Serve a small model on a machine that is smaller than the one it was set up for."""

from dataclasses import dataclass

import torch
from torch import nn


@dataclass(frozen=True)
class Settings:
    threads: int = 1
    window: int = 32


def set_up(settings: Settings) -> None:
    torch.manual_seed(0)
    torch.set_num_threads(settings.threads)


class Detector(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv1d(8, channels, 5, padding=2),
            nn.ReLU(),
            nn.Conv1d(channels, channels, 5, padding=2),
            nn.ReLU(),
            nn.Conv1d(channels, channels, 5, padding=2),
            nn.AdaptiveAvgPool1d(1),
            nn.Flatten(),
            nn.Linear(channels, 2),
        )

    def forward(self, windows: torch.Tensor) -> torch.Tensor:
        return self.layers(windows).softmax(-1)


class Service:
    def __init__(self, model: Detector, settings: Settings) -> None:
        self.model = model.eval()
        self.window = settings.window
        self.chance = 0.0

    @torch.inference_mode()
    def receive(self, signals: torch.Tensor) -> None:
        windows = signals.unfold(1, self.window * 8, self.window).transpose(0, 1)
        chances = self.model(windows)
        self.chance = max(self.chance, chances[:, 1].max().item())


def main(requests: int) -> None:
    settings = Settings(threads=32)  # the problem
    set_up(settings)
    service = Service(Detector(48), settings)
    for _ in range(requests):
        service.receive(torch.randn(8, 512))
    print(f"highest chance {service.chance:.4f}")


if __name__ == "__main__":
    main(700)
