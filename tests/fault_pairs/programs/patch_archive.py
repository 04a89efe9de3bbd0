"""Denoising autoencoder on image patches kept in one compressed archive."""
import os
import tempfile

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)
torch.manual_seed(0)

PATCHES = 400
SIDE = 48


def build_archive(path):
    rng = np.random.default_rng(0)
    axis = np.linspace(0, 3, SIDE, dtype=np.float32)
    yy, xx = np.meshgrid(axis, axis, indexing="ij")
    clean = np.empty((PATCHES, 1, SIDE, SIDE), np.float32)
    for i in range(PATCHES):
        a, b, c = rng.uniform(0.5, 4, 3)
        clean[i, 0] = np.round(np.sin(a * xx + b * yy + c), 1)
    noise_level = rng.uniform(0.1, 0.5, PATCHES).astype(np.float32)
    np.savez_compressed(path, clean=clean, noise_level=noise_level)


class PatchDataset(Dataset):
    def __init__(self, path):
        self.archive = np.load(path)
        self.length = len(self.archive["noise_level"])

    def __len__(self):
        return self.length

    def __getitem__(self, i):
        clean = self.archive["clean"][i]  # the problem
        level = self.archive["noise_level"][i]
        rng = np.random.default_rng(i)
        noisy = clean + level * rng.standard_normal(clean.shape, dtype=np.float32)
        return torch.from_numpy(noisy), torch.from_numpy(clean)


class Denoiser(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(width, 1, 3, padding=1),
        )

    def forward(self, x):
        return x - self.net(x)


def train(model, loader, epochs):
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(epochs):
        total = 0.0
        for noisy, clean in loader:
            loss = nn.functional.mse_loss(model(noisy), clean)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
        print(f"epoch {epoch} mse {total / len(loader):.5f}")
    return total / len(loader)


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "patches.npz")
        build_archive(path)
        gen = torch.Generator().manual_seed(1)
        loader = DataLoader(PatchDataset(path), batch_size=16, shuffle=True, generator=gen)
        final = train(Denoiser(), loader, 2)
    print(f"final {final:.4f}")


if __name__ == "__main__":
    main()
