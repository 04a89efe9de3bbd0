"""Simulate many small systems; the number of threads comes from the cluster's settings."""

import torch
from torch import nn


def configure(threads: int) -> None:
    torch.set_num_threads(threads)
    torch.manual_seed(0)


class Dynamics(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(size, 256), nn.Tanh(), nn.Linear(256, size))

    def forward(self, state: torch.Tensor) -> torch.Tensor:
        return self.layers(state)


@torch.inference_mode()
def simulate(model: Dynamics, state: torch.Tensor, steps: int) -> torch.Tensor:
    for _ in range(steps):
        slope = model(state)
        state = torch.tanh(state + 0.01 * slope)
    return state


def main(steps: int) -> None:
    configure(threads=2)
    print(simulate(Dynamics(64), torch.randn(512, 64), steps).mean().item())


if __name__ == "__main__":
    main(600)
