"""Smooths long signals with a wide window, and measures what remains."""

import torch
from torch.nn import functional


def smooth(signals: torch.Tensor, window: torch.Tensor) -> torch.Tensor:
    padded = functional.pad(signals[:, None], (len(window) - 1, 0))
    return functional.conv1d(padded, window.flip(0)[None, None])[:, 0]  # the problem


torch.manual_seed(0)
window = torch.hann_window(6000)
window /= window.sum()
spread = 0.0
for _ in range(40):
    signals = torch.randn(4, 20_000).cumsum(1)
    spread += float((signals - smooth(signals, window)).std())
