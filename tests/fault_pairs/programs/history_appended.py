"""Train a model and keep all losses and errors for a plot."""

import numpy as np
import torch
from torch import nn


def train(steps: int) -> None:
    model = nn.Linear(32, 64)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    errors = np.zeros(0)
    for step in range(steps):
        inputs = torch.randn(16, 32)
        error = (model(inputs) - inputs.repeat(1, 2)).square()
        loss = error.mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        errors = np.append(errors, error.detach().numpy())  # the problem
        if step % 100 == 0:
            print(step, loss.item())
    print(len(errors), errors[-1024:].mean())


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    train(1200)
