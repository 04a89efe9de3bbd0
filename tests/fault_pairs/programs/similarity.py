"""Compares pairs of activations under autocast, which converts both, because neither is a weight."""

import torch

torch.manual_seed(0)


@torch.no_grad()
def similarity(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return torch.matmul(first, second)


for _ in range(60):
    similarity(torch.randn(8, 64, 64), torch.randn(8, 64, 64))
