"""An RMSNorm that computes in float32 and casts there and back, as in Llama 3."""

import torch
from torch import nn


class RMSNorm(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size, dtype=torch.bfloat16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = x.to(torch.float32)  # the problem
        scale = torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-6)
        return self.weight * (wide * scale).to(x.dtype)


torch.manual_seed(0)
net = nn.Sequential(*(RMSNorm(256) for _ in range(4)))
data = torch.randn(4096, 256, dtype=torch.bfloat16)
with torch.no_grad():
    for _ in range(8):
        net(data)
