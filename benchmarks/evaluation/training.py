"""What the PyTorch models of the evaluation share: a training step."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn


def trained(
    model: nn.Module,
    loss: Callable[[], torch.Tensor],
    rate: float = 1e-3,
    *,
    fused: bool | None = None,
) -> Callable[[], torch.Tensor]:
    """Return a training step: the loss, its gradients, AdamW."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, fused=fused)

    def step() -> torch.Tensor:
        optimizer.zero_grad()
        value = loss()
        value.backward()
        optimizer.step()
        return value.detach()

    return step
