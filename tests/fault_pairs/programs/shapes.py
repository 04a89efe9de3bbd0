"""Repeats rows as often as a tensor says: the same shapes, and sometimes far more work."""

import torch

torch.manual_seed(0)
rows = torch.randn(16, 512)
for step in range(40):
    times = torch.full((16,), 16000 if step % 8 == 7 else 1)
    rows.repeat_interleave(times, 0)  # the problem
