"""Watch the activations of a layer during training."""

import torch
from torch import nn


class Watcher:
    def __init__(self, layer: nn.Module) -> None:
        self.outputs: list[torch.Tensor] = []
        layer.register_forward_hook(self.remember)

    def remember(
        self, layer: nn.Module, inputs: tuple[torch.Tensor, ...], output: torch.Tensor
    ) -> None:
        self.outputs.append(output.detach().clone())  # the problem

    def mean(self) -> float:
        return sum(output.mean().item() for output in self.outputs) / len(self.outputs)


def build() -> nn.Sequential:
    return nn.Sequential(nn.Linear(32, 512), nn.ReLU(), nn.Linear(512, 32))


def train(steps: int) -> float:
    model = build()
    watcher = Watcher(model[1])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(steps):
        batch = torch.randn(512, 32)
        loss = (model(batch) - batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return watcher.mean()


if __name__ == "__main__":
    torch.manual_seed(0)
    print(train(500))
