"""Opens a context of autocast for each frame, so that each converts all weights again."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 512))


@torch.no_grad()
def answer(frame: torch.Tensor) -> torch.Tensor:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return net(frame)  # the problem


frame = torch.randn(1, 512)
for _ in range(150):
    answer(frame)
