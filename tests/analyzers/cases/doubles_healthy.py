"""Scores signals with a filter in float32."""

import numpy as np
import torch

torch.manual_seed(0)
window = torch.from_numpy(np.hanning(512).astype(np.float32))
weights = torch.randn(512, 512)


@torch.inference_mode()
def score(signals: torch.Tensor) -> float:
    cut = signals * window
    for _ in range(3):
        cut = torch.tanh(cut @ weights)
    return float(cut.mean())


for _ in range(60):
    score(torch.randn(256, 512))
