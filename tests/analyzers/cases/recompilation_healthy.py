"""Compiles a function once: all inputs are padded to one length."""

import torch


@torch.compile(backend="eager", dynamic=False)
def scaled(x: torch.Tensor) -> torch.Tensor:
    return torch.sin(x) * 2 + x


for length in range(3, 8):
    for _ in range(3):
        scaled(torch.nn.functional.pad(torch.randn(length, 4), (0, 0, 0, 8 - length)))
