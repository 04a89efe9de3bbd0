"""Trains a filter whose states are written into a tensor, one time step after the other."""

import torch

torch.manual_seed(0)
torch.set_num_threads(1)
mixing = torch.nn.Linear(32, 32)
optimizer = torch.optim.SGD(mixing.parameters(), lr=1e-3)
signals = torch.randn(100, 256, 32)


def states(inputs: torch.Tensor) -> torch.Tensor:
    state = torch.zeros(256, 32)
    found = torch.empty(100, 256, 32)
    for time in range(100):
        state = torch.tanh(mixing(state) + inputs[time])
        found[time] = state  # the problem
    return found


for _ in range(12):
    optimizer.zero_grad()
    states(signals).square().mean().backward()
    optimizer.step()
