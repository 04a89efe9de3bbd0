"""Makes every sample with slow Python code while the step waits."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Samples(Dataset[torch.Tensor]):
    def __len__(self) -> int:
        return 1024

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.tensor([float(hash((index, each)) % 97) for each in range(256)])


torch.manual_seed(0)
net = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 256))
for batch in DataLoader(Samples(), batch_size=64):  # the problem
    net(batch).square().mean().backward()
    net.zero_grad()
