"""Train a tagger of recordings in batches of similar length."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset, Sampler

Sample = tuple[torch.Tensor, int]


class Recordings(Dataset[Sample]):
    def __init__(self, folder: Path) -> None:
        self.files = sorted(folder.glob("*.npy"))
        self.sizes = [file.stat().st_size for file in self.files]
        self.window = torch.hann_window(512)
        self.bands = torch.rand(257, 32) / 257

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> Sample:
        wave = torch.from_numpy(np.load(self.files[index])).float() / 2**15
        spectrum = torch.stft(wave, 512, 64, window=self.window, return_complex=True)
        return (spectrum.abs().T @ self.bands).log1p(), index % 4


class BatchesOfLikeLength(Sampler[list[int]]):
    def __init__(self, dataset: Recordings, size: int) -> None:
        self.dataset = dataset
        self.size = size

    def length(self, index: int) -> int:
        return len(self.dataset[index][0])  # the problem

    def __iter__(self) -> Iterator[list[int]]:
        order = sorted(range(len(self.dataset)), key=self.length)
        batches = [order[start : start + self.size] for start in range(0, len(order), self.size)]
        yield from (batches[place] for place in torch.randperm(len(batches)).tolist())


def collate(samples: list[Sample]) -> tuple[torch.Tensor, torch.Tensor]:
    spectra, classes = zip(*samples, strict=True)
    return pad_sequence(list(spectra), batch_first=True), torch.tensor(classes)


def train(folder: Path, epochs: int) -> None:
    dataset = Recordings(folder)
    loader = DataLoader(
        dataset,
        batch_sampler=BatchesOfLikeLength(dataset, 16),
        collate_fn=collate,
        num_workers=2,
        persistent_workers=True,
    )
    model = nn.Sequential(nn.Linear(32, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU())
    model.append(nn.Linear(128, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(epochs):
        for spectra, classes in loader:
            loss = nn.functional.cross_entropy(model(spectra).mean(1), classes)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    torch.manual_seed(0)
    random = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as name:
        for number in range(140):
            wave = random.integers(-9999, 9999, 200 * (200 + number * 37 % 200), dtype=np.int16)
            np.save(Path(name) / f"{number:03}.npy", wave)
        train(Path(name), 3)
