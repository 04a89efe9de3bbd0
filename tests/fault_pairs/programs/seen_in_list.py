"""Build a vocabulary from documents, then train an embedding of it."""

import random

import torch
from torch import nn


def documents(count: int) -> list[list[str]]:
    words = [f"word{number}" for number in range(8_000)]
    return [random.choices(words, k=60) for _ in range(count)]


def vocabulary(texts: list[list[str]]) -> list[str]:
    known: list[str] = []
    for text in texts:
        for word in text:
            if word not in known:  # the problem
                known.append(word)
    return known


def train(steps: int) -> None:
    texts = documents(600)
    known = vocabulary(texts)
    number = {word: index for index, word in enumerate(known)}
    model = nn.Sequential(nn.EmbeddingBag(len(known), 32), nn.Linear(32, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(steps):
        text = texts[step % len(texts)]
        loss = model(torch.tensor([[number[word] for word in text]])).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(len(known), loss.item())


if __name__ == "__main__":
    random.seed(0)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    train(600)
