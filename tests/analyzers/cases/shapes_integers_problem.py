"""Counts the paths of two steps in a graph with a product of integers, which no fast library multiplies."""

import torch

torch.manual_seed(0)
edges = torch.randint(0, 2, (320, 320))
for _ in range(150):
    paths = edges @ edges  # the problem
    edges = (paths > paths.float().median()).long()
