"""Computes with many times as many threads as processors."""

import os

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(8 * len(os.sched_getaffinity(0)))
net = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 256))
data = torch.randn(256, 256)
with torch.inference_mode():
    for _ in range(100):
        net(data)  # the problem
