"""Deep Q-learning with a replay memory."""

import random
from collections import deque

import torch
from torch import nn

Transition = tuple[torch.Tensor, int, float, torch.Tensor]


class Memory:
    def __init__(self, size: int) -> None:
        self.items: deque[Transition] = deque(maxlen=size)

    def add(self, item: Transition) -> None:
        self.items.append(item)

    def sample(self, count: int) -> list[Transition]:
        return [self.items[random.randrange(len(self.items))] for _ in range(count)]  # the problem


class Agent:
    def __init__(self) -> None:
        self.network = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
        self.optimizer = torch.optim.SGD(self.network.parameters(), lr=1e-3)

    def learn(self, batch: list[Transition]) -> float:
        states, actions, rewards, following = zip(*batch, strict=True)
        with torch.no_grad():
            target = (
                torch.tensor(rewards) + 0.99 * self.network(torch.stack(following)).max(1).values
            )
        values = self.network(torch.stack(states)).gather(1, torch.tensor(actions)[:, None])[:, 0]
        loss = (values - target).square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


def main(size: int, steps: int) -> None:
    random.seed(0)
    torch.manual_seed(0)
    memory = Memory(size)
    states = torch.randn(1000, 4).unbind()
    for number in range(size):
        memory.add((states[number % 1000], number % 2, 1.0, states[(number + 1) % 1000]))
    agent = Agent()
    for step in range(steps):
        memory.add((states[step % 1000], step % 2, 0.5, states[(step + 1) % 1000]))
        loss = agent.learn(memory.sample(64))
        if step % 100 == 0:
            print(step, loss)


if __name__ == "__main__":
    main(1_000_000, 1_000)
