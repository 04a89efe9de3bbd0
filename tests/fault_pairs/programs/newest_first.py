"""Learn from a sliding window of measurements, the newest first."""

import torch
from torch import nn

WIDTH = 16
KEPT = 200_000


def learn(steps: int) -> None:
    model = nn.Linear(WIDTH, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    stream = torch.randn(steps * WIDTH).tolist()
    window = [0.0] * KEPT
    for step in range(steps):
        for value in stream[step * WIDTH : (step + 1) * WIDTH]:
            window.insert(0, value)  # the problem
            window.pop()
        inputs = torch.tensor(window[:WIDTH])
        loss = (model(inputs) - inputs.mean()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(step, loss.item())


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    learn(1500)
