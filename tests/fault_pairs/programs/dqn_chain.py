"""Deep Q-learning on a noisy chain walk with experience replay."""
import random
from collections import deque, namedtuple

import torch
import torch.nn as nn

torch.set_num_threads(1)
torch.manual_seed(0)

Transition = namedtuple("Transition", "state action reward next_state")
CAPACITY = 1_500_000
WARMUP = 1_000_000
STEPS = 1200
BATCH = 512


class ChainWalk:
    """Position on a line; moving right is rewarded near the end."""

    def __init__(self, rng, size=32):
        self.rng = rng
        self.size = size
        self.pos = 0

    def step(self, action):
        before = self.pos
        move = 1 if action == 1 else -1
        if self.rng.random() < 0.2:
            move = -move
        self.pos = max(0, min(self.size - 1, self.pos + move))
        reward = 1.0 if self.pos == self.size - 1 else 0.0
        if reward:
            self.pos = 0
        return before, reward, self.pos


class ReplayMemory:
    def __init__(self, capacity):
        self.capacity = capacity
        self.memory = deque(maxlen=capacity)

    def push(self, *args):
        self.memory.append(Transition(*args))

    def sample(self, rng, n):
        return rng.sample(self.memory, n)  # the problem

    def __len__(self):
        return len(self.memory)


def make_net(states=32, actions=2):
    return nn.Sequential(nn.Linear(states, 64), nn.ReLU(), nn.Linear(64, actions))


def one_hot(positions, size=32):
    return nn.functional.one_hot(torch.tensor(positions), size).float()


def optimise(net, target, opt, batch, gamma=0.95):
    batch = Transition(*zip(*batch))
    q = net(one_hot(batch.state)).gather(1, torch.tensor(batch.action)[:, None])[:, 0]
    with torch.no_grad():
        best = target(one_hot(batch.next_state)).max(1).values
    goal = torch.tensor(batch.reward) + gamma * best
    loss = nn.functional.smooth_l1_loss(q, goal)
    opt.zero_grad()
    loss.backward()
    opt.step()
    return loss.item()


def main():
    rng = random.Random(0)
    env = ChainWalk(rng)
    memory = ReplayMemory(CAPACITY)
    for _ in range(WARMUP):
        action = rng.randrange(2)
        state, reward, nxt = env.step(action)
        memory.push(state, action, reward, nxt)
    net, target = make_net(), make_net()
    target.load_state_dict(net.state_dict())
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    total = 0.0
    for step in range(1, STEPS + 1):
        with torch.no_grad():
            action = int(net(one_hot([env.pos])).argmax())
        state, reward, nxt = env.step(action)
        memory.push(state, action, reward, nxt)
        total += optimise(net, target, opt, memory.sample(rng, BATCH))
        if step % 300 == 0:
            target.load_state_dict(net.state_dict())
            print(f"step {step} loss {total / step:.5f}")
    print(f"final {total / STEPS:.5f}")


if __name__ == "__main__":
    main()
