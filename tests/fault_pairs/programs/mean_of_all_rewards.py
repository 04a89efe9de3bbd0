import sys

import numpy as np
import torch
from torch import nn
from torch.nn import functional


class Progress:
    def __init__(self, total: int, every: int) -> None:
        self.total, self.every = total, every
        self.rewards: list[float] = []

    def update(self, reward: float) -> None:
        self.rewards.append(reward)
        mean = np.mean(self.rewards)  # the problem
        if len(self.rewards) % self.every == 0:
            sys.stdout.write(f"{len(self.rewards)}/{self.total}: mean reward {mean:.4f}\n")


class Bandit:
    def __init__(self, rng: np.random.Generator, arms: int, features: int) -> None:
        self.rng = rng
        self.weights = rng.standard_normal((arms, features), dtype=np.float32)

    def context(self) -> np.ndarray:
        return self.rng.standard_normal(self.weights.shape[1:], dtype=np.float32)

    def pull(self, context: np.ndarray, arm: int) -> float:
        return float(self.weights[arm] @ context + 0.1 * self.rng.standard_normal())


def choose(net: nn.Module, context: torch.Tensor, rng: np.random.Generator, epsilon: float) -> int:
    if rng.random() < epsilon:
        return int(rng.integers(net.out_features))
    with torch.no_grad():
        return int(net(context).argmax())


def main(steps: int = 14_000, batch: int = 20, arms: int = 8, features: int = 12) -> None:
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    bandit = Bandit(rng, arms, features)
    net = nn.Linear(features, arms)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    progress = Progress(steps, steps // 4)
    for _ in range(steps // batch):
        contexts, arms_pulled, rewards = [], [], []
        for _ in range(batch):
            seen = bandit.context()
            contexts.append(torch.from_numpy(seen))
            arms_pulled.append(choose(net, contexts[-1], rng, 0.1))
            rewards.append(bandit.pull(seen, arms_pulled[-1]))
            progress.update(rewards[-1])
        values = net(torch.stack(contexts)).gather(1, torch.tensor(arms_pulled)[:, None])
        loss = functional.mse_loss(values[:, 0], torch.tensor(rewards))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
