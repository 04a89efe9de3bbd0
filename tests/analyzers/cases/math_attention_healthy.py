"""Looks up notes by attention that prefers the fused kernel."""

import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

torch.manual_seed(0)
layers = nn.ModuleList(nn.Linear(64, 3 * 64) for _ in range(2))
optimizer = torch.optim.SGD(layers.parameters(), lr=0.01)


def attend(values: torch.Tensor) -> torch.Tensor:
    for layer in layers:
        parts = layer(values).unflatten(-1, (3, 4, 16)).permute(2, 0, 3, 1, 4)
        seen = nn.functional.scaled_dot_product_attention(*parts)
        values = values + seen.transpose(1, 2).flatten(2)
    return values


with sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.MATH]):
    for _ in range(12):
        loss = attend(torch.randn(2, 768, 64)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
