"""Train task heads on a shared trunk and keep a moving average of all weights."""

import torch
from torch import nn


class MultiTask(nn.Module):
    def __init__(self, tasks: int) -> None:
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 32))
        self.heads = nn.ModuleList(nn.Linear(32, 8) for _ in range(tasks))

    def forward(self, batch: torch.Tensor, task: int) -> torch.Tensor:
        return self.heads[task](self.trunk(batch))


class AveragedWeights:
    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self.shadow = [weight.detach().clone() for weight in model.parameters()]

    @torch.no_grad()
    def update(self, model: nn.Module) -> None:
        for shadow, weight in zip(self.shadow, model.parameters(), strict=True):
            shadow.mul_(self.decay).add_(weight, alpha=1 - self.decay)  # the problem


def train(steps: int, tasks: int) -> float:
    torch.manual_seed(0)
    model = MultiTask(tasks)
    average = AveragedWeights(model, 0.999)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loss = torch.zeros(())
    for step in range(steps):
        batch, target = torch.randn(128, 64), torch.randn(128, 8)
        loss = nn.functional.mse_loss(model(batch, step % tasks), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        average.update(model)
    return loss.item()


if __name__ == "__main__":
    print(f"loss {train(steps=250, tasks=500):.4f}")
