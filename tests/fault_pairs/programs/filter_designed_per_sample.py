"""Train a detector of keywords on recordings that came at another sampling rate."""

import math

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Resampler:
    """Band-limited interpolation from one whole sampling rate to another."""

    def __init__(self, before: int, after: int, zeros: int = 12) -> None:
        common = math.gcd(before, after)
        self.stride, phases = before // common, after // common
        width = math.ceil(zeros * self.stride / phases)
        places = np.arange(-width, width + self.stride) / self.stride
        times = (places[None] - np.arange(phases)[:, None] / phases) * phases
        window = np.cos(np.clip(times / zeros, -1, 1) * np.pi / 2) ** 2
        kernel = np.sinc(times) * window * phases / self.stride
        self.width = width
        self.kernel = torch.from_numpy(kernel.astype(np.float32))[:, None]

    def __call__(self, wave: torch.Tensor) -> torch.Tensor:
        padded = nn.functional.pad(wave, (self.width, self.width + self.stride))
        parts = nn.functional.conv1d(padded[None, None], self.kernel, stride=self.stride)
        return parts[0].T.flatten()


class Keywords(Dataset[tuple[torch.Tensor, int]]):
    def __init__(self, recordings: np.ndarray, rate: int) -> None:
        self.recordings = recordings
        self.rate = rate

    def __len__(self) -> int:
        return len(self.recordings)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        wave = torch.from_numpy(self.recordings[index]).float() / 2**15
        resampler = Resampler(self.rate, 16000)  # the problem
        return resampler(wave)[:8000], index % 6


class Detector(nn.Module):
    def __init__(self, keywords: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv1d(1, 16, 80, stride=40), nn.ReLU(), nn.Conv1d(16, 32, 5, stride=4), nn.ReLU()
        )
        self.head = nn.Linear(32, keywords)

    def forward(self, waves: torch.Tensor) -> torch.Tensor:
        return self.head(self.layers(waves[:, None]).amax(-1))


def train(dataset: Keywords, epochs: int) -> None:
    loader = DataLoader(dataset, batch_size=32, shuffle=True, num_workers=1)
    model = Detector(6)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(epochs):
        total = 0.0
        for waves, keywords in loader:
            loss = nn.functional.cross_entropy(model(waves), keywords)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(epoch, f"{total:.3f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    random = np.random.default_rng(0)
    train(Keywords(random.integers(-9999, 9999, (300, 22050), dtype=np.int16), 44100), 2)
