"""Reads the scores of its model one by one, besides the values that its healthy twin reads."""

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

words = np.arange(4096) % 50
embedding, layer, head = nn.Embedding(50, 16), nn.LSTM(16, 16, batch_first=True), nn.Linear(16, 2)
optimizer = torch.optim.SGD([*embedding.parameters(), *layer.parameters(), *head.parameters()])


def batch() -> torch.Tensor:
    starts = torch.randint(4000, (8,))
    return torch.stack([torch.from_numpy(words[start : start + 12]) for start in starts])


def normalize(scores: torch.Tensor) -> torch.Tensor:
    return torch.stack([row / row.std() for row in scores])  # torch reads the number of elements


def train_step() -> None:
    packed = pack_padded_sequence(
        embedding(batch()), torch.full((8,), 12), batch_first=True, enforce_sorted=False
    )
    _, (hidden, _) = layer(packed)
    scores = normalize(head(hidden[-1]))
    if sum(float(score) for score in scores[:, 0]) > 100:  # the problem
        return
    scores.square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()


torch.manual_seed(0)
for _ in range(20):
    train_step()
