"""Q-learning from a replay memory of past transitions."""

import collections
import random

import torch
from torch import nn

Transition = tuple[torch.Tensor, int, float, torch.Tensor]


class Memory:
    def __init__(self, capacity: int) -> None:
        self.transitions: collections.deque[Transition] = collections.deque(maxlen=capacity)

    def add(self, transition: Transition) -> None:
        self.transitions.append(transition)

    def sample(self, count: int) -> list[Transition]:
        places = [random.randrange(len(self.transitions)) for _ in range(count)]
        return [self.transitions[place] for place in places]  # the problem


def make_state() -> torch.Tensor:
    return torch.rand(4)


def learn(steps: int) -> None:
    network = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 2))
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    memory = Memory(capacity=100_000)
    for _ in range(100_000):
        memory.add((make_state(), random.randrange(2), random.random(), make_state()))
    for step in range(steps):
        memory.add((make_state(), random.randrange(2), random.random(), make_state()))
        states, actions, rewards, following = zip(*memory.sample(256), strict=True)
        with torch.no_grad():
            best = network(torch.stack(following)).max(1).values
        target = torch.tensor(rewards) + 0.99 * best
        chosen = network(torch.stack(states)).gather(1, torch.tensor(actions)[:, None])[:, 0]
        loss = nn.functional.smooth_l1_loss(chosen, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(step, loss.item())


if __name__ == "__main__":
    random.seed(0)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    learn(600)
