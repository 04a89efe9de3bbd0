"""DLRM-small on Criteo: one table for 26 features, a dot interaction, two multi-layer perceptrons.

As in AlgoPerf, the table is looked up by indexing and its gradient is dense.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Size:
    batch: int
    rows: int
    width: int
    bottom: tuple[int, ...]
    top: tuple[int, ...]


DENSE, SPARSE = 13, 26
SIZES = {
    "tiny": Size(256, 20_000, 32, (128, 64), (256, 256, 128, 1)),
    "paper": Size(8192, 4_194_304, 128, (512, 256), (1024, 1024, 512, 256, 1)),
}


def torch_step(size: Size):
    import torch
    from torch import nn
    from training import trained

    def perceptron(width: int, sizes: tuple[int, ...]) -> nn.Sequential:
        layers: list[nn.Module] = []
        for each in sizes:
            layers += [nn.Linear(width, each), nn.ReLU()]
            width = each
        return nn.Sequential(*layers[:-1])

    class Dlrm(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Parameter(torch.randn(size.rows, size.width) * size.rows**-0.5)
            self.bottom = perceptron(DENSE, (*size.bottom, size.width))
            pairs = (SPARSE + 1) * (SPARSE + 2) // 2
            self.top = perceptron(size.width + pairs, size.top)
            self.register_buffer("pairs", torch.triu_indices(SPARSE + 1, SPARSE + 1))

        def forward(self, numbers: torch.Tensor, items: torch.Tensor) -> torch.Tensor:
            dense = self.bottom(numbers)
            rows = self.table[items.flatten()].view(*items.shape, size.width)
            features = torch.cat([dense[:, None], rows], dim=1)
            products = torch.bmm(features, features.transpose(1, 2))
            chosen = products[:, self.pairs[0], self.pairs[1]]
            return self.top(torch.cat([dense, chosen], dim=1)).squeeze(1)

    model = Dlrm()
    numbers = torch.rand(size.batch, DENSE)
    items = torch.randint(size.rows, (size.batch, SPARSE))
    clicks = torch.randint(2, (size.batch,)).float()

    def loss() -> torch.Tensor:
        return nn.functional.binary_cross_entropy_with_logits(model(numbers, items), clicks)

    return trained(model, loss)


def jax_step(size: Size):
    import jax
    import jax.numpy as jnp
    import layers
    import numpy as np

    def perceptron(p, x, sizes, name):
        for index, width in enumerate(sizes):
            x = jax.nn.relu(x) if index else x
            x = layers.dense(p, x, width, f"{name}{index}")
        return x

    def loss(p, numbers, items, clicks):
        dense = perceptron(p, numbers, (*size.bottom, size.width), "bottom")
        table = p("table", size.rows, size.width, scale=size.rows**-0.5)
        rows = table[items.ravel()].reshape(*items.shape, size.width)
        features = jnp.concatenate([dense[:, None], rows], axis=1)
        products = jnp.einsum("bnd,bmd->bnm", features, features)
        left, right = np.triu_indices(SPARSE + 1)
        x = jnp.concatenate([dense, products[:, left, right]], axis=1)
        logits = perceptron(p, x, size.top, "top")[:, 0]
        return jnp.mean(jax.nn.softplus(logits) - clicks * logits)

    random = np.random.default_rng(0)
    numbers = jnp.asarray(random.random((size.batch, DENSE), dtype=np.float32))
    items = jnp.asarray(random.integers(size.rows, size=(size.batch, SPARSE)))
    clicks = jnp.asarray(random.integers(2, size=size.batch), jnp.float32)
    return layers.trained(loss, numbers, items, clicks)
