import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import ConcatDataset, DataLoader, Dataset, TensorDataset


def experience(classes: tuple[int, int], count: int, features: int) -> TensorDataset:
    labels = torch.randint(*classes, (count,))
    x = torch.randn(count, features)
    x[torch.arange(count), labels % features] += 3.0
    return TensorDataset(x, labels)


class Rehearsal:
    def __init__(self) -> None:
        self.parts: list[Dataset] = []
        self.seen: Dataset | None = None

    def add(self, data: Dataset) -> Dataset:
        self.parts.append(data)
        self.seen = data if self.seen is None else ConcatDataset([self.seen, data])  # the problem
        return self.seen


class Net(nn.Module):
    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(features, 64), nn.ReLU(), nn.Linear(64, classes))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.body(x)


def train(model: nn.Module, optimizer: torch.optim.Optimizer, data: Dataset, batch: int) -> float:
    total, steps = torch.zeros(()), 0
    for x, labels in DataLoader(data, batch_size=batch, shuffle=True):
        loss = functional.cross_entropy(model(x), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.detach()
        steps += 1
    return total.item() / steps


def main(rounds: int = 300, count: int = 6, features: int = 32) -> None:
    torch.manual_seed(0)
    model = Net(features, 40)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    rehearsal = Rehearsal()
    for index in range(rounds):
        data = rehearsal.add(experience((index % 20, index % 20 + 20), count, features))
        loss = train(model, optimizer, data, 128)
        if index % 100 == 99:
            print(f"round {index}: {len(data)} samples, loss {loss:.3f}")


if __name__ == "__main__":
    main()
