"""Compiles a function for every length it meets."""

import torch


@torch.compile(backend="eager", dynamic=False)
def scaled(x: torch.Tensor) -> torch.Tensor:
    return torch.sin(x) * 2 + x


for length in range(3, 8):
    for _ in range(3):
        scaled(torch.randn(length, 4))  # the problem
