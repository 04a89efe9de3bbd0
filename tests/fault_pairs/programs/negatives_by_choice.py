"""Learn vectors of products from shopping baskets, with negatives by popularity."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

Sample = tuple[np.ndarray, np.ndarray]


class Negatives:
    def __init__(self, counts: np.ndarray, seed: int) -> None:
        weights = counts**0.75
        self.shares = weights / weights.sum()
        self.random = np.random.default_rng(seed)

    def draw(self, count: int) -> np.ndarray:
        return self.random.choice(len(self.shares), count, p=self.shares)  # the problem


class Baskets(Dataset[Sample]):
    def __init__(self, products: int, pairs: int) -> None:
        random = np.random.default_rng(0)
        self.pairs = random.integers(0, products, (pairs, 2))
        counts = np.bincount(self.pairs.flatten(), minlength=products)
        self.negatives = Negatives(counts + 1.0, 1)

    def __len__(self) -> int:
        return len(self.pairs)

    def __getitem__(self, index: int) -> Sample:
        return self.pairs[index], self.negatives.draw(6)


class SkipGram(nn.Module):
    def __init__(self, products: int, size: int) -> None:
        super().__init__()
        self.centres = nn.Embedding(products, size, sparse=True)
        self.contexts = nn.Embedding(products, size, sparse=True)

    def forward(self, pairs: torch.Tensor, far: torch.Tensor) -> torch.Tensor:
        vectors = self.centres(pairs[:, :1])
        close = (vectors * self.contexts(pairs[:, 1:])).sum(-1)
        apart = (vectors * self.contexts(far)).sum(-1)
        gain = nn.functional.logsigmoid(close).sum() + nn.functional.logsigmoid(-apart).sum()
        return -gain / len(pairs)


def main(products: int, pairs: int) -> None:
    torch.manual_seed(0)
    loader = DataLoader(Baskets(products, pairs), batch_size=64, shuffle=True)
    model = SkipGram(products, 16)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    losses = []
    for batch in loader:
        loss = model(*batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(f"{losses[0]:.4f} {sum(losses) / len(losses):.4f}")


if __name__ == "__main__":
    main(60_000, 5000)
