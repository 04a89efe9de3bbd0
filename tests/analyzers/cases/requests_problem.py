"""Answers requests, and builds the same table of words anew for each."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 512)).eval()
words = [f"word{number}" for number in range(20_000)]


def answer(request: str) -> int:
    table = {word: number for number, word in enumerate(sorted(words))}  # the problem
    features = torch.zeros(64, 512)
    features[:, table[request] % 512] = 1.0
    for _ in range(4):
        features = net(features)
    return int(features.sum().argmax())


with torch.inference_mode():
    for turn in range(120):
        answer(f"word{turn}")
