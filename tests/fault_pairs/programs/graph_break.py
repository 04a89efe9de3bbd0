"""Prints inside a compiled function."""

import torch


@torch.compile(backend="eager")
def scaled(x: torch.Tensor) -> torch.Tensor:
    y = torch.sin(x)
    print("half way")  # the problem
    return y * 2 + x


for _ in range(5):
    scaled(torch.randn(64, 4))
