"""Counts which words occur in the same texts, by a product of integers."""

import torch

torch.manual_seed(0)
pairs = torch.zeros(600, 600)
for _ in range(12):
    occurs = torch.rand(2000, 600) < 0.02
    counts = occurs.long()
    together = counts.T @ counts  # the problem
    pairs += together.float()
