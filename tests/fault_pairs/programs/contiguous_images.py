"""Run a convolutional network over pictures."""

import torch
from torch import nn


def block(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, inputs, 3, padding=1, groups=inputs),
        nn.BatchNorm2d(inputs),
        nn.ReLU6(),
        nn.Conv2d(inputs, outputs, 1),
    )


class MobileNetwork(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 32, 3, stride=2)
        self.blocks = nn.Sequential(*(block(32, 32) for _ in range(6)))
        self.head = nn.Linear(32, 10)

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        features = self.blocks(self.stem(pictures))  # the problem
        return self.head(features.mean((2, 3)))


def build() -> MobileNetwork:
    torch.manual_seed(0)
    return MobileNetwork().eval()


@torch.inference_mode()
def classify(model: MobileNetwork, batches: int) -> int:
    found = 0
    for _ in range(batches):
        pictures = torch.rand(4, 3, 160, 160)
        found += int(model(pictures).argmax(-1).sum())
    return found


if __name__ == "__main__":
    print(classify(build(), 30))
