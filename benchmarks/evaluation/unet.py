"""U-Net on fastMRI: four levels of two convolutions with instance norm, an L1 loss."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Size:
    batch: int
    image: int
    channels: int
    levels: int = 4


SIZES = {"tiny": Size(2, 64, 8), "paper": Size(32, 320, 32)}


def torch_step(size: Size):
    import torch
    from torch import nn
    from training import trained

    def block(inner: int, outer: int) -> nn.Sequential:
        layers: list[nn.Module] = []
        for width in (inner, outer):
            layers += [nn.Conv2d(width, outer, 3, padding=1, bias=False)]
            layers += [nn.InstanceNorm2d(outer), nn.LeakyReLU(0.2)]
        return nn.Sequential(*layers)

    class UNet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            widths = [size.channels << level for level in range(size.levels + 1)]
            self.down = nn.ModuleList(map(block, [1, *widths[:-1]], widths))
            self.up = nn.ModuleList()
            self.merge = nn.ModuleList()
            for width in reversed(widths[:-1]):
                self.up.append(nn.ConvTranspose2d(2 * width, width, 2, stride=2, bias=False))
                self.merge.append(block(2 * width, width))
            self.last = nn.Conv2d(size.channels, 1, 1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            kept = []
            for index, layer in enumerate(self.down):
                x = layer(nn.functional.avg_pool2d(x, 2) if index else x)
                kept.append(x)
            kept.pop()
            for up, merge in zip(self.up, self.merge, strict=True):
                x = merge(torch.cat([up(x), kept.pop()], dim=1))
            return self.last(x)

    model = UNet()
    images = torch.randn(2, size.batch, 1, size.image, size.image)
    return trained(model, lambda: nn.functional.l1_loss(model(images[0]), images[1]))


def jax_step(size: Size):
    import jax
    import jax.numpy as jnp
    import layers
    import numpy as np

    def block(p, x, width):
        for name in ("first", "second"):
            x = layers.conv(p, x, width, 3, name=name)
            mean, variance = x.mean((1, 2), keepdims=True), x.var((1, 2), keepdims=True)
            x = jax.nn.leaky_relu((x - mean) * jax.lax.rsqrt(variance + 1e-5), 0.2)
        return x

    def doubled(p, x, width):
        weight = p("kernel", 2, 2, x.shape[-1], width, scale=x.shape[-1] ** -0.5)
        return jax.lax.conv_transpose(x, weight, (2, 2), "SAME")

    def halved(x):
        batch, height, width, channels = x.shape
        return x.reshape(batch, height // 2, 2, width // 2, 2, channels).mean((2, 4))

    def loss(p, image, wanted):
        x, kept = image, []
        for level in range(size.levels + 1):
            x = block(p.at(f"down{level}"), halved(x) if level else x, size.channels << level)
            kept.append(x)
        kept.pop()
        for level in reversed(range(size.levels)):
            width = size.channels << level
            x = jnp.concatenate([doubled(p.at(f"up{level}"), x, width), kept.pop()], axis=-1)
            x = block(p.at(f"merge{level}"), x, width)
        return jnp.abs(layers.conv(p, x, 1, 1, name="last") - wanted).mean()

    shape = (2, size.batch, size.image, size.image, 1)
    images = jnp.asarray(np.random.default_rng(0).standard_normal(shape, dtype=np.float32))
    return layers.trained(loss, images[0], images[1])
