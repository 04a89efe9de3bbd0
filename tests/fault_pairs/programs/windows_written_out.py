"""Train a forecaster on sliding windows of the load of many electricity meters."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def meters(count: int, hours: int) -> np.ndarray:
    random = np.random.default_rng(0)
    times = np.arange(hours)
    phase = random.uniform(0, 6.283, (count, 1))
    daily = np.sin(times * 6.283 / 24 + phase)
    weekly = 0.5 * np.sin(times * 6.283 / 168 + phase)
    return (daily + weekly + 0.1 * random.normal(size=(count, hours))).astype(np.float32)


class Windows(Dataset):
    def __init__(self, series: np.ndarray, history: int, horizon: int) -> None:
        self.history = history
        views = np.lib.stride_tricks.sliding_window_view(series, history + horizon, axis=1)
        self.windows = views.reshape(-1, history + horizon)  # the problem

    def __len__(self) -> int:
        return len(self.windows)

    def __getitem__(self, place: int) -> tuple[np.ndarray, np.ndarray]:
        window = self.windows[place]
        return window[: self.history], window[self.history :]


class Forecaster(nn.Module):
    def __init__(self, history: int, horizon: int) -> None:
        super().__init__()
        self.trend = nn.Linear(history, horizon)
        self.rest = nn.Sequential(
            nn.Linear(history, 256),
            nn.ReLU(),
            nn.Linear(256, 256),
            nn.ReLU(),
            nn.Linear(256, horizon),
        )

    def forward(self, history: torch.Tensor) -> torch.Tensor:
        level = history.mean(1, keepdim=True)
        return level + self.trend(history - level) + self.rest(history - level)


def train(batches: int, history: int, horizon: int) -> float:
    torch.manual_seed(0)
    data = Windows(meters(60, 6000), history, horizon)
    sampler = torch.utils.data.RandomSampler(data, replacement=True, num_samples=256 * batches)
    loader = DataLoader(data, batch_size=256, sampler=sampler)
    model = Forecaster(history, horizon)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    total = 0.0
    for past, future in loader:
        loss = nn.functional.mse_loss(model(past), future)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / batches


if __name__ == "__main__":
    print(f"mean loss {train(batches=500, history=336, horizon=48):.4f}")
