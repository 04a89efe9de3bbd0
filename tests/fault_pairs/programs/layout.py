"""A U-Net's down path that changes the layout around every convolution."""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous(memory_format=torch.channels_last)  # the problem
        return self.conv(x).contiguous()


torch.manual_seed(0)
net = nn.Sequential(*(Block(16) for _ in range(4))).to(memory_format=torch.channels_last)
image = torch.randn(4, 16, 96, 96)
for _ in range(6):
    net(image).mean().backward()
