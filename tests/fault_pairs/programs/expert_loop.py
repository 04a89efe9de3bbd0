"""Train a mixture of small experts; every expert sees a slice of the tokens."""

import torch
from torch import nn


class Experts(nn.Module):
    def __init__(self, count: int, size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(count, size, size) / size**0.5)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        results = []
        for number in range(len(self.weight)):
            results.append(tokens[number] @ self.weight[number])  # the problem
        return torch.stack(results)


class Model(nn.Module):
    def __init__(self, count: int, size: int) -> None:
        super().__init__()
        self.experts = Experts(count, size)
        self.gain = nn.Parameter(torch.ones(size))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.experts(tokens) * self.gain


def train(steps: int, experts: int, size: int) -> float:
    model = Model(experts, size)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loss = torch.zeros(())
    for _ in range(steps):
        tokens = torch.randn(experts, 4, size)
        loss = (model(tokens) - tokens).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


if __name__ == "__main__":
    torch.manual_seed(0)
    print(train(300, 128, 16))
