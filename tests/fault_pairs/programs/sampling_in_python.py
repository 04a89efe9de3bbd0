"""Generate tokens with nucleus sampling."""

import math
import random

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, vocabulary: int, size: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, size)
        self.cell = nn.GRUCell(size, size)
        self.head = nn.Linear(size, vocabulary)

    def forward(
        self, token: torch.Tensor, state: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        state = self.cell(self.embedding(token), state)
        return self.head(state), state


def nucleus(logits: torch.Tensor, share: float) -> int:
    weights = [math.exp(value) for value in logits.tolist()]  # the problem
    total = sum(weights)
    ranked = sorted(((weight / total, token) for token, weight in enumerate(weights)), reverse=True)
    kept, mass = [], 0.0
    for weight, token in ranked:
        kept.append((weight, token))
        mass += weight
        if mass >= share:
            break
    point = random.random() * mass
    for weight, token in kept:
        point -= weight
        if point <= 0:
            return token
    return kept[-1][1]


@torch.inference_mode()
def generate(model: Model, size: int, length: int) -> list[int]:
    token, state = torch.zeros(1, dtype=torch.long), torch.zeros(1, size)
    tokens = []
    for _ in range(length):
        logits, state = model(token, state)
        token = torch.tensor([nucleus(logits[0], 0.9)])
        tokens.append(int(token))
    return tokens


if __name__ == "__main__":
    random.seed(0)
    torch.manual_seed(0)
    print(len(generate(Model(20_000, 128).eval(), 128, 80)))
