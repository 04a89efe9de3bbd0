"""Draws the next of many items from a model's output with one operator, for each call of the model."""

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
    return int(torch.multinomial(shares, 1))


@torch.inference_mode()
def walk(model: Model, length: int) -> int:
    item, state = 0, torch.zeros(1, 8)
    for _ in range(length):
        shares, state = model(torch.tensor([item]), state)
        item = draw(shares[0])
    return item


torch.manual_seed(0)
walk(Model().eval(), 200)
