"""Finds edges in pictures by the difference of two Gaussian blurs, each with its whole kernel."""

import torch
from torch.nn import functional


def blur(pictures: torch.Tensor, width: float) -> torch.Tensor:
    line = torch.exp(-(torch.arange(-10, 11) ** 2) / (2 * width**2))
    kernel = torch.outer(line, line) / line.sum() ** 2
    return functional.conv2d(pictures, kernel[None, None], padding=10)  # the problem


torch.manual_seed(0)
for _ in range(12):
    pictures = torch.rand(4, 1, 160, 160)
    edges = (blur(pictures, 2.0) - blur(pictures, 4.0)).abs() > 0.05
