"""Scores signals with a filter that NumPy made in float64."""

import numpy as np
import torch

torch.manual_seed(0)
window = torch.from_numpy(np.hanning(512))
weights = torch.randn(512, 512, dtype=torch.float64)


@torch.inference_mode()
def score(signals: torch.Tensor) -> float:
    cut = signals * window  # the problem
    for _ in range(3):
        cut = torch.tanh(cut @ weights)
    return float(cut.mean())


for _ in range(60):
    score(torch.randn(256, 512))
