"""Draws the next of many items from a model's output with a loop in Python, for each call of the model."""

import random

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.items = nn.Embedding(15_000, 8)
        self.cell = nn.GRUCell(8, 8)
        self.head = nn.Linear(8, 15_000)

    def forward(self, item: torch.Tensor, state: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        state = self.cell(self.items(item), state)
        return self.head(state).softmax(-1), state


def draw(shares: torch.Tensor) -> int:
    point = random.random()
    for item, share in sorted(enumerate(shares.tolist()), key=lambda pair: -pair[1]):  # the problem
        point -= share
        if point <= 0:
            return item
    return 0


@torch.inference_mode()
def walk(model: Model, length: int) -> int:
    item, state = 0, torch.zeros(1, 8)
    for _ in range(length):
        shares, state = model(torch.tensor([item]), state)
        item = draw(shares[0])
    return item


random.seed(0)
torch.manual_seed(0)
walk(Model().eval(), 200)
