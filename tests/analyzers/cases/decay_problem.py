"""Makes the same weights of past values in each call, with Python's operators."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(64, 64)


def decay(length: int) -> torch.Tensor:
    age = torch.arange(length)
    distance = age[:, None] - age  # the problem
    return (0.9**distance).masked_fill(distance < 0, 0.0)


@torch.inference_mode()
def smooth(values: torch.Tensor) -> torch.Tensor:
    return decay(len(values)) @ net(values)


for _ in range(60):
    smooth(torch.rand(300, 64))
