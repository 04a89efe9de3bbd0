"""Opens one context of autocast for all frames, which keeps the converted weights."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 512))


@torch.no_grad()
def answer(frame: torch.Tensor) -> torch.Tensor:
    return net(frame)


frame = torch.randn(1, 512)
with torch.autocast("cpu", dtype=torch.bfloat16):
    for _ in range(150):
        answer(frame)
