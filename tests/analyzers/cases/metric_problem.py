"""Computes the median of all scores so far after each batch."""

import torch

torch.manual_seed(0)
scores = torch.empty(60 * 4096)


def median(count: int) -> torch.Tensor:
    ordered = scores[:count].sort().values  # the problem
    return ordered[count // 2]


for batch in range(60):
    scores[batch * 4096 : (batch + 1) * 4096] = torch.randn(4096, 64).mean(1)
    median((batch + 1) * 4096)
