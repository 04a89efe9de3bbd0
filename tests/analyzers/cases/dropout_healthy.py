"""Scores with a network in evaluation mode."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(
    *(nn.Sequential(nn.Linear(128, 128), nn.ReLU(), nn.Dropout(0.2)) for _ in range(4))
)


net.eval()


@torch.inference_mode()
def score(batches: int) -> float:
    return sum(net(torch.randn(1024, 128)).mean().item() for _ in range(batches))


score(40)
