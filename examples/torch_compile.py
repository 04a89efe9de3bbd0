"""Train one small model twice: as written, then through torch.compile.

Compiling needs a C++ compiler and takes most of the run; a profile shows that time as its own
branch ("torch.compile: compiling"), apart from the compiled steps.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import torch
from torch import nn

Forward = Callable[[torch.Tensor], torch.Tensor]


class GatedMLP(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.gate = nn.Linear(width, 4 * width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(torch.sin(self.up(x)) * torch.sigmoid(self.gate(x)))


def train(forward: Forward, model: nn.Module, x: torch.Tensor, steps: int) -> float:
    """Return the mean time of a step in seconds, without the first."""
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    started = time.perf_counter()
    for step in range(steps + 1):
        if step == 1:
            started = time.perf_counter()
        optimizer.zero_grad()
        loss = (forward(x) - x).square().mean()
        loss.backward()
        optimizer.step()
    return (time.perf_counter() - started) / steps


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare eager and compiled training steps.")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--no-eager", action="store_true", help="run the compiled model only")
    parser.add_argument("--threads", type=int, default=1, help="threads inside an operator")
    options = parser.parse_args()

    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    x = torch.randn(options.batch_size, options.width)
    model = GatedMLP(options.width)
    if not options.no_eager:
        print(f"eager     {1e3 * train(model, model, x, options.steps):.3f} ms/step")
    compiled: Forward = torch.compile(model)
    print(f"compiled  {1e3 * train(compiled, model, x, options.steps):.3f} ms/step")


if __name__ == "__main__":
    main()
