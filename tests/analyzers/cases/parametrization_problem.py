"""Answers with layers under weight norm, which computes the same weights in each call."""

import torch
from torch import nn
from torch.nn.utils.parametrizations import weight_norm

torch.manual_seed(0)
net = nn.Sequential(*(weight_norm(nn.Linear(512, 512)) for _ in range(4))).eval()


@torch.inference_mode()
def answer(requests: int) -> float:
    return sum(net(torch.randn(2, 512)).mean().item() for _ in range(requests))  # the problem


answer(100)
