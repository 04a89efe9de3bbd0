"""Train a bag-of-words model on text, loaded by worker processes."""

import random
import re

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

WORD = re.compile(r"[a-z]+|[0-9]+")
VOCABULARY = 5000


def make_text(count: int, words: int) -> list[str]:
    chooser = random.Random(0)
    return [
        " ".join(f"word{chooser.randrange(VOCABULARY)}" for _ in range(words)) for _ in range(count)
    ]


def tokenize(text: str) -> list[int]:
    tokens = []
    for match in WORD.finditer(text.lower()):
        tokens.append(hash(match.group()) % VOCABULARY)  # the problem
    return tokens


class Reviews(Dataset[tuple[torch.Tensor, int]]):
    def __init__(self, texts: list[str]) -> None:
        self.texts = texts

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        tokens = tokenize(self.texts[index])
        return torch.tensor(tokens[:1000]), index % 2


def main(epochs: int) -> None:
    torch.manual_seed(0)
    loader = DataLoader(
        Reviews(make_text(200, 1000)), batch_size=20, num_workers=2, persistent_workers=True
    )
    model = nn.Sequential(nn.EmbeddingBag(VOCABULARY, 32), nn.Linear(32, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(epochs):
        for tokens, classes in loader:
            loss = nn.functional.cross_entropy(model(tokens), classes)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    main(8)
