"""Reads sequences with a recurrent cell written by hand, one step after the other."""

import torch
from torch import nn


class Cell(nn.Module):
    def __init__(self, size: int, hidden: int) -> None:
        super().__init__()
        self.of_input = nn.Linear(size, 4 * hidden)
        self.of_state = nn.Linear(hidden, 4 * hidden)

    def forward(
        self, x: torch.Tensor, hidden: torch.Tensor, cell: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        gates = self.of_input(x) + self.of_state(hidden)  # the problem
        kept, new, value, shown = gates.chunk(4, dim=-1)
        cell = torch.sigmoid(kept) * cell + torch.sigmoid(new) * torch.tanh(value)
        return torch.sigmoid(shown) * torch.tanh(cell), cell


torch.manual_seed(0)
net, head = Cell(32, 64), nn.Linear(64, 8)
optimizer = torch.optim.SGD([*net.parameters(), *head.parameters()], lr=0.01)
data = torch.randn(40, 16, 32)
for _ in range(10):
    hidden = cell = torch.zeros(16, 64)
    for x in data:
        hidden, cell = net(x, hidden, cell)
    head(hidden).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
