"""Sequence classification with a recurrent layer."""

import torch
from torch import nn


class RecurrentLayer(nn.Module):
    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(inputs, hidden, batch_first=True)

    def forward(self, sequence: torch.Tensor) -> torch.Tensor:
        outputs, _ = self.lstm(sequence)
        return outputs[:, -1]


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
