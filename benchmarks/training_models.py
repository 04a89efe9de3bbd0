"""Three small training steps: a multi-layer perceptron, a transformer encoder, a convolutional net."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn


def mlp() -> Callable[[], None]:
    torch.manual_seed(0)
    layers: list[nn.Module] = []
    for _ in range(8):
        layers += [nn.Linear(64, 64), nn.ReLU()]
    model = nn.Sequential(*layers, nn.Linear(64, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    batch, target = torch.randn(32, 64), torch.randint(0, 10, (32,))
    return _step(model, optimizer, batch, target)


def transformer() -> Callable[[], None]:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(64, 4, 128, dropout=0.1, batch_first=True)
    model = nn.Sequential(nn.TransformerEncoder(layer, 4), nn.Flatten(), nn.Linear(16 * 64, 10))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=False)
    batch, target = torch.randn(4, 16, 64), torch.randint(0, 10, (4,))
    return _step(model, optimizer, batch, target)


def convnet() -> Callable[[], None]:
    torch.manual_seed(0)
    layers: list[nn.Module] = []
    channels = 3
    for width in (16, 32, 32, 64):
        layers += [nn.Conv2d(channels, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU()]
        layers += [nn.MaxPool2d(2)]
        channels = width
    model = nn.Sequential(*layers, nn.Flatten(), nn.Linear(64 * 2 * 2, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    batch, target = torch.randn(4, 3, 32, 32), torch.randint(0, 10, (4,))
    return _step(model, optimizer, batch, target)


def _step(
    model: nn.Module, optimizer: torch.optim.Optimizer, batch: torch.Tensor, target: torch.Tensor
) -> Callable[[], None]:
    loss_function = nn.CrossEntropyLoss()

    def step() -> None:
        optimizer.zero_grad()
        loss = loss_function(model(batch), target)
        loss.backward()
        optimizer.step()

    return step


MODELS = {"MLP": mlp, "transformer": transformer, "conv net": convnet}
