"""ResNet-50 on ImageNet: bottleneck blocks of three convolutions with batch norm."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Size:
    batch: int
    image: int
    channels: int
    classes: int


BLOCKS = (3, 4, 6, 3)
SIZES = {"tiny": Size(4, 64, 16, 100), "paper": Size(128, 224, 64, 1000)}


def torch_step(size: Size):
    import torch
    from torch import nn
    from training import trained

    def normed(inner: int, outer: int, kernel: int, stride: int = 1) -> nn.Sequential:
        layer = nn.Conv2d(inner, outer, kernel, stride, padding=kernel // 2, bias=False)
        return nn.Sequential(layer, nn.BatchNorm2d(outer))

    class Bottleneck(nn.Module):
        def __init__(self, inner: int, width: int, stride: int) -> None:
            super().__init__()
            self.narrow = normed(inner, width, 1)
            self.middle = normed(width, width, 3, stride)
            self.wide = normed(width, 4 * width, 1)
            is_same = stride == 1 and inner == 4 * width
            self.skip = nn.Identity() if is_same else normed(inner, 4 * width, 1, stride)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            inside = self.narrow(x).relu()
            inside = self.middle(inside).relu()
            return (self.wide(inside) + self.skip(x)).relu()

    class ResNet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Sequential(normed(3, size.channels, 7, 2), nn.ReLU())
            blocks, inner = [], size.channels
            for stage, count in enumerate(BLOCKS):
                width = size.channels << stage
                for index in range(count):
                    blocks.append(Bottleneck(inner, width, 2 if stage and not index else 1))
                    inner = 4 * width
            self.blocks = nn.Sequential(*blocks)
            self.last = nn.Linear(inner, size.classes)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = nn.functional.max_pool2d(self.first(x), 3, 2, padding=1)
            return self.last(self.blocks(x).mean((2, 3)))

    model = ResNet()
    images = torch.randn(size.batch, 3, size.image, size.image)
    labels = torch.randint(size.classes, (size.batch,))
    return trained(model, lambda: nn.functional.cross_entropy(model(images), labels))


def jax_step(size: Size):
    import jax
    import jax.numpy as jnp
    import layers
    import numpy as np

    def normed(p, x, width, kernel, stride=1):
        return layers.batch_norm(p, layers.conv(p, x, width, kernel, stride=stride))

    def bottleneck(p, x, width, stride):
        inside = jax.nn.relu(normed(p.at("narrow"), x, width, 1))
        inside = jax.nn.relu(normed(p.at("middle"), inside, width, 3, stride))
        inside = normed(p.at("wide"), inside, 4 * width, 1)
        if x.shape != inside.shape:
            x = normed(p.at("skip"), x, 4 * width, 1, stride)
        return jax.nn.relu(inside + x)

    def loss(p, images, labels):
        x = jax.nn.relu(normed(p.at("first"), images, size.channels, 7, 2))
        x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
        for stage, count in enumerate(BLOCKS):
            for index in range(count):
                stride = 2 if stage and not index else 1
                x = bottleneck(p.at(f"block{stage}.{index}"), x, size.channels << stage, stride)
        logits = layers.dense(p, x.mean((1, 2)), size.classes)
        return layers.cross_entropy(logits, labels)

    random = np.random.default_rng(0)
    shape = (size.batch, size.image, size.image, 3)
    images = jnp.asarray(random.standard_normal(shape, dtype=np.float32))
    labels = jnp.asarray(random.integers(size.classes, size=size.batch))
    return layers.trained(loss, images, labels)
