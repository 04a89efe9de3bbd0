"""Computes the median of all scores once, and the median of each batch, whose sizes differ."""

import torch

torch.manual_seed(0)
scores = torch.empty(60 * 4096)


def median(values: torch.Tensor) -> torch.Tensor:
    ordered = values.sort().values
    return ordered[len(values) // 2]


for batch in range(60):
    scores[batch * 4096 : (batch + 1) * 4096] = torch.randn(4096, 64).mean(1)
    median(scores[batch * 4096 :][: 512 + 64 * (batch * 37 % 60)])
median(scores)
