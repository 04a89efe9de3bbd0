"""Trains on how related pairs of genomes are, by weights of the markers that change in each step."""

import numpy as np
import torch
from torch import nn

rng = np.random.default_rng(0)


def relatedness(genomes: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return np.einsum("im,m,jm->ij", genomes, weights, genomes)  # the problem


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(128, 1024), nn.ReLU(), nn.Linear(1024, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
genomes = rng.integers(0, 3, (128, 500)).astype(np.float32)
for _ in range(80):
    weights = rng.random(500, dtype=np.float32)
    related = torch.from_numpy(relatedness(genomes, weights))
    loss = model(related).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
