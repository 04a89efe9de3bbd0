"""Starts many more loader workers than there are cores, as U-Net on fastMRI does."""

import os
import warnings

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

warnings.simplefilter("ignore")  # torch warns of this itself; other loaders do not


class Slices(Dataset[torch.Tensor]):
    def __len__(self) -> int:
        return 320

    def __getitem__(self, index: int) -> torch.Tensor:
        wave = torch.arange(4096.0) * (index + 1)
        for _ in range(200):
            wave = torch.fft.fft(wave).real
        return wave[:256]


torch.set_num_threads(1)
net = nn.Sequential(
    nn.Linear(256, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 8)
)
workers = 2 * len(os.sched_getaffinity(0)) + 1
for batch in DataLoader(Slices(), batch_size=4, num_workers=workers):  # the problem
    net(batch).square().mean().backward()
    net.zero_grad()
