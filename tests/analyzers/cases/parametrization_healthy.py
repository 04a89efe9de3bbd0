"""Answers with layers whose weight norm was replaced by its weights."""

import torch
from torch import nn
from torch.nn.utils.parametrizations import weight_norm
from torch.nn.utils.parametrize import remove_parametrizations

torch.manual_seed(0)
net = nn.Sequential(*(weight_norm(nn.Linear(512, 512)) for _ in range(4))).eval()
for layer in net:
    remove_parametrizations(layer, "weight")


@torch.inference_mode()
def answer(requests: int) -> float:
    return sum(net(torch.randn(2, 512)).mean().item() for _ in range(requests))


answer(100)
