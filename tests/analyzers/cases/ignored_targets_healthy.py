"""Trains a tagger of which few words have a tag; the tags of these words are scored."""

import torch
from torch import nn


class Tagger(nn.Module):
    def __init__(self, words: int, size: int, tags: int) -> None:
        super().__init__()
        self.words = nn.Embedding(words, size)
        self.layers = nn.Sequential(nn.Linear(size, size), nn.GELU())
        self.scores = nn.Linear(size, tags)

    def forward(self, words: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
        return self.scores(self.layers(self.words(words))[chosen])


torch.manual_seed(0)
torch.set_num_threads(1)
model, loss_of = Tagger(500, 64, 3000), nn.CrossEntropyLoss(ignore_index=-1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(40):
    words = torch.randint(0, 500, (8, 64))
    tags = torch.where(torch.rand(words.shape) < 0.2, words * 5, -1)
    chosen = tags >= 0
    # One tag in ten is not sure.
    sure = tags[chosen].masked_fill(torch.rand(int(chosen.sum())) < 0.1, -1)
    loss = loss_of(model(words, chosen), sure)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(sum(value.sum().item() for value in model.parameters()))
