"""Fine-tune a text classifier on short and long texts."""

import random

import torch
from torch import nn

LONGEST = 512


class Texts:
    def __init__(self, count: int) -> None:
        chooser = random.Random(0)
        self.texts = [
            [chooser.randrange(1, 1000) for _ in range(chooser.randint(10, 60))]
            for _ in range(count)
        ]

    def batch(self, start: int, size: int) -> torch.Tensor:
        chosen = self.texts[start : start + size]
        tokens = torch.zeros(size, LONGEST, dtype=torch.long)  # the problem
        for row, text in enumerate(chosen):
            tokens[row, : len(text)] = torch.tensor(text)
        return tokens


class Classifier(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(1000, size, padding_idx=0)
        self.encoder = nn.TransformerEncoderLayer(size, 4, 4 * size, batch_first=True)
        self.head = nn.Linear(size, 2)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        padding = tokens == 0
        encoded = self.encoder(self.embedding(tokens), src_key_padding_mask=padding)
        summed = encoded.masked_fill(padding[..., None], 0).sum(1)
        return self.head(summed / (~padding).sum(1, keepdim=True))


def train(steps: int, size: int) -> float:
    texts, model = Texts(steps * size), Classifier(64)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loss = torch.zeros(())
    for step in range(steps):
        loss = model(texts.batch(step * size, size)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


if __name__ == "__main__":
    torch.manual_seed(0)
    print(train(10, 8))
