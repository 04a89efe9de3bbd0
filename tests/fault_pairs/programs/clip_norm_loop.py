"""Train many small adapters and limit the norm of their gradients."""

import torch
from torch import nn


class Adapters(nn.Module):
    def __init__(self, count: int) -> None:
        super().__init__()
        self.scale = nn.ParameterList(nn.Parameter(torch.ones(16)) for _ in range(count))

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        return batch * torch.stack(list(self.scale)).sum(0)


def clip_gradients(parameters: list[torch.Tensor], limit: float) -> float:
    total = 0.0
    for parameter in parameters:
        total += parameter.grad.norm(2).item() ** 2  # the problem
    norm = total**0.5
    if norm > limit:
        for parameter in parameters:
            parameter.grad.mul_(limit / norm)
    return norm


def fit(model: nn.Module, steps: int) -> list[float]:
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, foreach=True)
    parameters = list(model.parameters())
    norms = []
    for _ in range(steps):
        batch = torch.randn(64, 16)
        loss = (model(batch) - batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        norms.append(clip_gradients(parameters, 1.0))
        optimizer.step()
    return norms


if __name__ == "__main__":
    torch.manual_seed(0)
    print(fit(Adapters(600), 200)[-1])
