"""Follows the parities of paths in a graph by products of integers, which no fast library multiplies."""

import torch

torch.manual_seed(0)
edges = torch.randint(0, 2, (320, 320))
for _ in range(150):
    edges = edges @ edges % 2  # the problem
