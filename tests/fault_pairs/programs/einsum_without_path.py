import numpy as np
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset


class Montage:
    """Spatial and spectral filters of a recording of many electrodes."""

    def __init__(
        self, rng: np.random.Generator, electrodes: int, sources: int, samples: int
    ) -> None:
        self.unmix = rng.standard_normal((sources, electrodes), dtype=np.float32) / electrodes
        times = np.arange(samples) / samples
        bands = np.arange(1, 25)[:, None]
        self.bands = np.cos(2 * np.pi * bands * times).astype(np.float32) / samples

    def features(self, recording: np.ndarray) -> np.ndarray:
        return np.einsum("se,et,bt->sb", self.unmix, recording, self.bands)  # the problem


class Recordings(Dataset):
    def __init__(self, rng: np.random.Generator, count: int, electrodes: int, samples: int) -> None:
        self.montage = Montage(rng, electrodes, 16, samples)
        self.signals = rng.standard_normal((count, electrodes, samples), dtype=np.float32)
        self.labels = rng.integers(0, 4, count)

    def __len__(self) -> int:
        return len(self.signals)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        features = self.montage.features(self.signals[index])
        return torch.from_numpy(np.log1p(np.abs(features))), int(self.labels[index])


def train(model: nn.Module, loader: DataLoader, epochs: int) -> float:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loss = torch.zeros(())
    for _ in range(epochs):
        for features, labels in loader:
            loss = functional.cross_entropy(model(features), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return loss.item()


def main(count: int = 150, electrodes: int = 64, samples: int = 512, epochs: int = 2) -> None:
    torch.manual_seed(0)
    data = Recordings(np.random.default_rng(0), count, electrodes, samples)
    loader = DataLoader(data, batch_size=32, shuffle=True)
    model = nn.Sequential(nn.Flatten(), nn.Linear(16 * 24, 64), nn.ReLU(), nn.Linear(64, 4))
    print(f"loss {train(model, loader, epochs):.4f}")


if __name__ == "__main__":
    main()
