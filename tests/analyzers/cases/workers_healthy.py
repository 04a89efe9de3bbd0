"""Transforms the same slices once, and one worker loads them ahead."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Slices(Dataset[torch.Tensor]):
    def __init__(self) -> None:
        self.waves = torch.arange(4096.0) * torch.arange(1.0, 129.0)[:, None]
        for _ in range(200):
            self.waves = torch.fft.fft(self.waves).real

    def __len__(self) -> int:
        return 128

    def __getitem__(self, index: int) -> torch.Tensor:
        return self.waves[index, :256]


torch.set_num_threads(1)
net = nn.Sequential(
    nn.Linear(256, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 8)
)
for batch in DataLoader(Slices(), batch_size=4, num_workers=1, prefetch_factor=32):
    net(batch).square().mean().backward()
    net.zero_grad()
