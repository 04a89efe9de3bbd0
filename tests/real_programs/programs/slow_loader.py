"""Images decoded by two workers of a DataLoader, for a small convolutional network."""

import io
import zlib

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Images(Dataset):
    def __init__(self, count: int) -> None:
        random = np.random.default_rng(0)
        self.files = [
            zlib.compress(random.integers(0, 32, (3, 256, 256), np.uint8).tobytes(), 6)
            for _ in range(count)
        ]

    def __len__(self) -> int:
        return 20 * len(self.files)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        data = zlib.decompress(self.files[index % len(self.files)])
        image = np.load(io.BytesIO(as_npy(data)))
        small = image.astype(np.float32).reshape(3, 64, 4, 64, 4).mean((2, 4))
        return torch.from_numpy((small - small.mean()) / small.std()), index % 10


def as_npy(data: bytes) -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.frombuffer(data, np.uint8).reshape(3, 256, 256))
    return stream.getvalue()


def main() -> None:
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, stride=2),
        torch.nn.ReLU(),
        torch.nn.AdaptiveAvgPool2d(4),
        torch.nn.Flatten(),
        torch.nn.Linear(128, 10),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for images, labels in DataLoader(Images(64), batch_size=16, num_workers=2):
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
