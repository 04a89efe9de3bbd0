"""Step-based training of a small 3-D network on volumes produced on the fly."""
import itertools

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)
torch.manual_seed(0)

SIDE = 64
VOLUMES = 400
STEPS = 80
BATCH = 4


class PhantomVolumes(Dataset):
    """Noisy volumes with one bright ball; the label is the radius."""

    def __init__(self, count, side):
        self.count = count
        axis = np.linspace(-1, 1, side, dtype=np.float32)
        self.grid = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"))

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        rng = np.random.default_rng(index)
        centre = rng.uniform(-0.4, 0.4, 3).astype(np.float32)
        radius = float(rng.uniform(0.2, 0.6))
        dist = np.sqrt(((self.grid - centre[:, None, None, None]) ** 2).sum(0))
        volume = (dist < radius).astype(np.float32)
        channels = [volume + 0.3 * rng.standard_normal(volume.shape, dtype=np.float32) for _ in range(4)]
        return torch.from_numpy(np.stack(channels)), torch.tensor([radius])


class RadiusNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.AvgPool3d(2),
            nn.Conv3d(4, 8, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool3d(2),
            nn.Conv3d(8, 16, 3, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool3d(1),
        )
        self.head = nn.Linear(16, 1)

    def forward(self, x):
        return self.head(self.features(x).flatten(1))


def endless(loader):
    return itertools.cycle(loader)  # the problem


def train(model, loader, steps):
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    stream = endless(loader)
    model.train()
    mean = 0.0
    for step in range(1, steps + 1):
        volumes, radius = next(stream)
        loss = nn.functional.mse_loss(model(volumes), radius)
        opt.zero_grad()
        loss.backward()
        opt.step()
        mean += loss.item()
        if step % 20 == 0:
            print(f"step {step} loss {mean / step:.5f}")
    return mean / steps


def main():
    loader = DataLoader(PhantomVolumes(VOLUMES, SIDE), batch_size=BATCH)
    model = RadiusNet()
    print(f"final {train(model, loader, STEPS):.5f}")


if __name__ == "__main__":
    main()
