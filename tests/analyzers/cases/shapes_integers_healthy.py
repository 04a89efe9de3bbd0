"""Counts the same paths in float64, which holds these numbers exactly."""

import torch

torch.manual_seed(0)
edges = torch.randint(0, 2, (320, 320)).double()
for _ in range(150):
    paths = edges @ edges
    edges = (paths > paths.float().median()).double()
