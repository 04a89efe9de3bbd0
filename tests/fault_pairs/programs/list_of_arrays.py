"""Train a value network from a buffer of observations."""

import numpy as np
import torch
from torch import nn


class Buffer:
    def __init__(self, size: int) -> None:
        self.random = np.random.default_rng(0)
        self.states = [self.random.random(1200, dtype=np.float32) for _ in range(size)]
        self.values = [float(state.sum()) for state in self.states]

    def sample(self, count: int) -> tuple[torch.Tensor, torch.Tensor]:
        chosen = self.random.integers(0, len(self.states), count)
        states = [self.states[index] for index in chosen]
        values = [self.values[index] for index in chosen]
        return torch.tensor(states), torch.tensor(values)  # the problem


class Value(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(1200, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        return self.layers(states)[:, 0]


def learn(steps: int) -> float:
    buffer = Buffer(1000)
    model = Value()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    loss = torch.zeros(())
    for _ in range(steps):
        states, values = buffer.sample(64)
        loss = (model(states) - values).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


if __name__ == "__main__":
    torch.manual_seed(0)
    print(learn(250))
