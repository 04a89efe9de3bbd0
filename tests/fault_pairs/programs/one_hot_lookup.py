"""Recommend the next item of a shopping session."""

import torch
from torch import nn
from torch.nn import functional


class Sessions:
    def __init__(self, items: int, length: int) -> None:
        self.items = items
        self.length = length

    def batch(self, size: int) -> tuple[torch.Tensor, torch.Tensor]:
        starts = torch.randint(0, self.items, (size, 1))
        walk = torch.randint(1, 4, (size, self.length)).cumsum(1)
        items = (starts + walk) % self.items
        return items[:, :-1], items[:, 1:]


class Recommender(nn.Module):
    def __init__(self, items: int, size: int) -> None:
        super().__init__()
        self.items = items
        self.vectors = nn.Parameter(torch.randn(items, size))
        self.memory = nn.GRU(size, size, batch_first=True)
        self.head = nn.Linear(size, 64)
        self.shop = nn.Linear(64, 500)

    def embed(self, items: torch.Tensor) -> torch.Tensor:
        return functional.one_hot(items, self.items).float() @ self.vectors  # the problem

    def forward(self, items: torch.Tensor) -> torch.Tensor:
        states, _ = self.memory(self.embed(items))
        return self.shop(torch.relu(self.head(states)))


def train(model: Recommender, sessions: Sessions, steps: int) -> list[float]:
    optimizer = torch.optim.SGD(model.parameters(), lr=2.0)
    losses = []
    for step in range(steps):
        items, following = sessions.batch(64)
        scores = model(items)
        loss = functional.cross_entropy(scores.flatten(0, 1), following.flatten() // 40)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            losses.append(loss.item())
    return losses


def main(steps: int) -> None:
    torch.manual_seed(0)
    items = 20_000
    losses = train(Recommender(items, 64), Sessions(items, 13), steps)
    print("losses", [round(loss, 3) for loss in losses])


if __name__ == "__main__":
    main(30)
