"""Counts how many pixels of each kind of land were found, one kind after the other."""

import torch
from torch import nn

torch.manual_seed(0)
KINDS = 60
model = nn.Conv2d(3, KINDS, 8, stride=8)


def add(hits: torch.Tensor, found: torch.Tensor, wanted: torch.Tensor) -> None:
    for kind in range(KINDS):
        hits[kind] += ((found == kind) & (wanted == kind)).sum()  # the problem


@torch.inference_mode()
def evaluate(batches: int) -> torch.Tensor:
    hits = torch.zeros(KINDS, dtype=torch.long)
    for _ in range(batches):
        found = model(torch.randn(4, 3, 256, 256)).argmax(1).repeat_interleave(8, 1)
        found = found.repeat_interleave(8, 2)
        add(hits, found, torch.randint(0, KINDS, found.shape))
    return hits


evaluate(15)
