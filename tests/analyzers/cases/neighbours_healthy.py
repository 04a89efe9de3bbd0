"""A network on points, each of which looks at its nearest neighbours."""

import torch
from torch import nn


class Surroundings(nn.Module):
    def __init__(self, width: int, outputs: int) -> None:
        super().__init__()
        self.layer = nn.Linear(width, outputs)

    def forward(self, points: torch.Tensor, nearest: torch.Tensor) -> torch.Tensor:
        seen = torch.index_select(self.layer(points), 0, nearest)
        features = torch.relu(seen)
        return features.unflatten(0, (-1, 16)).mean(1)


torch.manual_seed(0)
layers = nn.ModuleList([Surroundings(64, 64), Surroundings(64, 32)])
optimizer = torch.optim.SGD(layers.parameters(), lr=0.01)
points = torch.randn(600, 64)
places = torch.randn(600, 3)
nearest = torch.cdist(places, places).topk(16, largest=False).indices.flatten()
for _ in range(25):
    hidden = points
    for layer in layers:
        hidden = layer(hidden, nearest)
    optimizer.zero_grad()
    hidden.square().mean().backward()
    optimizer.step()
