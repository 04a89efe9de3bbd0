"""Vision transformer S/16 on ImageNet: patches by a convolution, layers with the norm first."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Size:
    batch: int
    image: int
    width: int
    heads: int
    classes: int
    layers: int = 12
    patch: int = 16

    @property
    def patches(self) -> int:
        return (self.image // self.patch) ** 2


SIZES = {"tiny": Size(8, 64, 96, 6, 100, layers=6), "paper": Size(128, 224, 384, 6, 1000)}


def torch_step(size: Size):
    import torch
    from torch import nn
    from training import trained

    class VisionTransformer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.patches = nn.Conv2d(3, size.width, size.patch, size.patch)
            self.positions = nn.Parameter(torch.randn(size.patches, size.width) * 0.02)
            layer = nn.TransformerEncoderLayer(
                size.width,
                size.heads,
                4 * size.width,
                dropout=0.0,
                activation="gelu",
                batch_first=True,
                norm_first=True,
            )
            norm = nn.LayerNorm(size.width)
            self.encoder = nn.TransformerEncoder(
                layer, size.layers, norm, enable_nested_tensor=False
            )
            self.head = nn.Linear(size.width, size.classes)

        def forward(self, images: torch.Tensor) -> torch.Tensor:
            x = self.patches(images).flatten(2).transpose(1, 2) + self.positions
            return self.head(self.encoder(x).mean(1))

    model = VisionTransformer()
    images = torch.randn(size.batch, 3, size.image, size.image)
    labels = torch.randint(size.classes, (size.batch,))
    return trained(model, lambda: nn.functional.cross_entropy(model(images), labels))


def jax_step(size: Size):
    import jax.numpy as jnp
    import layers
    import numpy as np

    def loss(p, images, labels):
        side, patch = size.image // size.patch, size.patch
        x = images.reshape(-1, side, patch, side, patch, 3).transpose(0, 1, 3, 2, 4, 5)
        x = layers.dense(p, x.reshape(-1, size.patches, patch * patch * 3), size.width, "patches")
        x += p("positions", size.patches, size.width, scale=0.02)
        for index in range(size.layers):
            inside = p.at(f"layer{index}")
            x += layers.multi_head(inside, layers.layer_norm(inside, x, "first"), size.heads)
            x += layers.feed_forward(inside, layers.layer_norm(inside, x, "second"), 4 * size.width)
        logits = layers.dense(p, layers.layer_norm(p, x).mean(1), size.classes, "head")
        return layers.cross_entropy(logits, labels)

    random = np.random.default_rng(0)
    shape = (size.batch, size.image, size.image, 3)
    images = jnp.asarray(random.standard_normal(shape, dtype=np.float32))
    labels = jnp.asarray(random.integers(size.classes, size=size.batch))
    return layers.trained(loss, images, labels)
