"""Prints outside a compiled function."""

import torch


@torch.compile(backend="eager")
def scaled(x: torch.Tensor) -> torch.Tensor:
    y = torch.sin(x)
    return y * 2 + x


for _ in range(5):
    scaled(torch.randn(64, 4))
print("done")
