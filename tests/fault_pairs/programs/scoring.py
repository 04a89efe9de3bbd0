"""Scores many small batches: a loop of small operators around a model, without training steps."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(8, 1)


@torch.inference_mode()
def accuracy(batches: int) -> float:
    hits = []
    for _ in range(batches):
        batch = torch.randn(64, 8)
        hits.append(((net(batch)[:, 0] > 0) == (batch[:, 0] > 0)).float())
    return float(torch.cat(hits).mean())


accuracy(1500)
