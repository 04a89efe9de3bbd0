"""Gives the model only the newest note of the melody."""

import torch
from torch import nn

torch.manual_seed(0)
notes = nn.Embedding(64, 128)
body = nn.Sequential(nn.Linear(128, 512), nn.ReLU(), nn.Linear(512, 128))
scores = nn.Linear(128, 64)
model = nn.Sequential(notes, body, scores)


@torch.inference_mode()
def compose(melody: torch.Tensor, length: int) -> torch.Tensor:
    for _ in range(length):
        following = model(melody[-1:]).argmax(-1)
        melody = torch.cat((melody, following))
    return melody


compose(torch.zeros(8, dtype=torch.long), 250)
