"""Counts the letters of every text in Python, again in every step."""

import torch
from torch import nn

TEXTS = [f"the text of sample {number} " * 60 for number in range(160)]


def count_letters(texts: list[str]) -> torch.Tensor:
    rows = []
    for text in texts:
        row = [0.0] * 64
        for letter in text:
            row[ord(letter) % 64] += 1.0  # the problem
        rows.append(row)
    return torch.tensor(rows)


torch.manual_seed(0)
net = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64))
optimizer = torch.optim.SGD(net.parameters(), lr=0.001)
for _ in range(40):
    letters = count_letters(TEXTS)
    loss = nn.functional.mse_loss(net(letters), letters)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
