"""Answers requests with a table of words that is built once."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 512)).eval()
words = [f"word{number}" for number in range(400_000)]
table = {word: number for number, word in enumerate(sorted(words))}


def answer(request: str) -> int:
    features = torch.zeros(64, 512)
    features[:, table[request] % 512] = 1.0
    for _ in range(4):
        features = net(features)
    return int(features.sum().argmax())


with torch.inference_mode():
    for turn in range(300):
        answer(f"word{turn}")
