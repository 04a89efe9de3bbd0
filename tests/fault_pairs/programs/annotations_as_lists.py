import numpy as np
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset


class Tracks(Dataset):
    """Positions of a visitor on the pages of a shop."""

    def __init__(self, rng: np.random.Generator, visits: int, longest: int) -> None:
        self.clicks = []
        for length in rng.integers(longest // 2, longest, visits):
            clicks = rng.integers(0, 100_000, length)
            self.clicks.append(clicks.tolist())  # the problem
        self.bought = rng.integers(0, 2, visits)

    def __len__(self) -> int:
        return len(self.clicks)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return torch.as_tensor(self.clicks[index]) % 5000, int(self.bought[index])


def collate(samples: list[tuple[torch.Tensor, int]]) -> tuple[torch.Tensor, ...]:
    clicks, bought = zip(*samples, strict=True)
    lengths = torch.tensor([len(part) for part in clicks])
    offsets = functional.pad(lengths.cumsum(0)[:-1], (1, 0))
    return torch.cat(clicks), offsets, torch.tensor(bought)


class Propensity(nn.Module):
    def __init__(self, pages: int, width: int) -> None:
        super().__init__()
        self.pages = nn.EmbeddingBag(pages, width, mode="mean")
        self.head = nn.Sequential(nn.Linear(width, 64), nn.ReLU(), nn.Linear(64, 2))

    def forward(self, clicks: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
        return self.head(self.pages(clicks, offsets))


def main(visits: int = 40_000, longest: int = 400, steps: int = 100) -> None:
    torch.manual_seed(0)
    data = Tracks(np.random.default_rng(0), visits, longest)
    model = Propensity(5000, 32)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    loader = DataLoader(data, batch_size=64, shuffle=True, collate_fn=collate)
    total = torch.zeros(())
    for _, (clicks, offsets, bought) in zip(range(steps), loader, strict=False):
        loss = functional.cross_entropy(model(clicks, offsets), bought)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.detach()
    print(f"loss {total.item() / steps:.4f}")


if __name__ == "__main__":
    main()
