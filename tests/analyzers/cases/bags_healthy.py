"""Averages the rows of few words of a large table, with a gradient of these rows only."""

import torch
from torch import nn

WORDS = 100_000

torch.manual_seed(0)
bags = nn.EmbeddingBag(WORDS, 64, sparse=True)
head = nn.Linear(64, 8)
optimizer = torch.optim.SGD([*bags.parameters(), *head.parameters()], lr=0.1)
for _ in range(60):
    words = torch.randint(WORDS, (32, 40))
    scores = head(bags(words))
    loss = nn.functional.cross_entropy(scores, torch.randint(8, (32,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
