"""Sequence classification with a recurrent layer."""

import torch
from torch import nn


class RecurrentLayer(nn.Module):
    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.hidden = hidden
        self.from_input = nn.Linear(inputs, 4 * hidden)
        self.from_hidden = nn.Linear(hidden, 4 * hidden)

    def forward(self, sequence: torch.Tensor) -> torch.Tensor:
        state = sequence.new_zeros(sequence.shape[0], self.hidden)
        cell = torch.zeros_like(state)
        for step in range(sequence.shape[1]):
            gates = self.from_input(sequence[:, step]) + self.from_hidden(state)  # the problem
            write, keep, candidate, read = gates.chunk(4, 1)
            cell = torch.sigmoid(keep) * cell + torch.sigmoid(write) * torch.tanh(candidate)
            state = torch.sigmoid(read) * torch.tanh(cell)
        return state


class Classifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.recurrent = RecurrentLayer(16, 32)
        self.head = nn.Linear(32, 4)

    def forward(self, sequence: torch.Tensor) -> torch.Tensor:
        return self.head(self.recurrent(sequence))


def train(model: nn.Module, steps: int) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(steps):
        sequences = torch.randn(16, 100, 16)
        classes = torch.randint(0, 4, (16,))
        loss = nn.functional.cross_entropy(model(sequences), classes)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step}: loss {loss.item():.3f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    train(Classifier(), 80)
