"""Train vectors of users and products from clicks."""

from collections.abc import Iterator

import torch
from torch import nn
from torch.nn import functional


class Matching(nn.Module):
    def __init__(self, users: int, products: int, size: int) -> None:
        super().__init__()
        self.users = nn.Embedding(users, size)
        self.products = nn.Embedding(products, size)  # the problem
        self.tower = nn.Sequential(nn.Linear(size, size), nn.ReLU(), nn.Linear(size, size))

    def forward(self, users: torch.Tensor, products: torch.Tensor) -> torch.Tensor:
        return (self.tower(self.users(users)) * self.products(products)).sum(-1)


class Clicks:
    def __init__(self, users: int, products: int) -> None:
        self.users = users
        self.products = products

    def batches(self, steps: int, size: int) -> Iterator[tuple[torch.Tensor, ...]]:
        for _ in range(steps):
            users = torch.randint(0, self.users, (size,))
            products = torch.randint(0, self.products, (size,))
            yield users, products, ((users + products) % 2).float()


def train(model: Matching, clicks: Clicks, steps: int) -> float:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    total = 0.0
    for users, products, clicked in clicks.batches(steps, 512):
        loss = functional.binary_cross_entropy_with_logits(model(users, products), clicked)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / steps


def main(steps: int) -> None:
    torch.manual_seed(0)
    users, products = 1000, 200_000
    loss = train(Matching(users, products, 64), Clicks(users, products), steps)
    print(f"mean loss {loss:.4f}")


if __name__ == "__main__":
    main(90)
