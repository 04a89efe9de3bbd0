"""The same last layer with torch's loss."""

import torch
from torch import nn

WORDS, SMOOTHING, PADDING = 2000, 0.1, 0

torch.manual_seed(0)
layer = nn.Linear(32, WORDS)
states = torch.randn(8, 32, 32)
targets = torch.randint(0, WORDS, (8, 32))
for _ in range(15):
    logits = layer(states).flatten(0, 1)
    loss = nn.functional.cross_entropy(
        logits, targets.flatten(), ignore_index=PADDING, label_smoothing=SMOOTHING
    )
    loss.backward()
    layer.zero_grad()
