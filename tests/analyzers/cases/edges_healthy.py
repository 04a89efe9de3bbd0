"""Finds edges in pictures by the difference of two Gaussian blurs, each in two passes."""

import torch
from torch.nn import functional


def blur(pictures: torch.Tensor, width: float) -> torch.Tensor:
    line = torch.exp(-(torch.arange(-10, 11) ** 2) / (2 * width**2))
    line = line / line.sum()
    rows = functional.conv2d(pictures, line[None, None, None], padding=(0, 10))
    return functional.conv2d(rows, line[None, None, :, None], padding=(10, 0))


torch.manual_seed(0)
for _ in range(12):
    pictures = torch.rand(4, 1, 160, 160)
    edges = (blur(pictures, 2.0) - blur(pictures, 4.0)).abs() > 0.05
