from collections import deque
from collections.abc import Sequence

import numpy as np
import torch
from torch import nn
from torch.nn import functional

Frames = np.ndarray | Sequence[np.ndarray]


class Catch:
    """A ball falls, and a paddle is to be below it."""

    def __init__(self, size: int, rng: np.random.Generator) -> None:
        self.size, self.rng = size, rng

    def reset(self) -> np.ndarray:
        self.row, self.column, self.paddle = 0, int(self.rng.integers(self.size)), self.size // 2
        return self.draw()

    def draw(self) -> np.ndarray:
        frame = np.zeros((self.size, self.size), dtype=np.uint8)
        frame[self.row, self.column] = 255
        frame[-1, max(self.paddle - 4, 0) : self.paddle + 4] = 255
        return frame

    def step(self, action: int) -> tuple[np.ndarray, float, bool]:
        self.paddle = int(np.clip(self.paddle + 4 * (action - 1), 0, self.size - 1))
        self.row += 2
        done = self.row >= self.size - 2
        return self.draw(), float(done and abs(self.paddle - self.column) <= 4), done


class FrameStack:
    def __init__(self, env: Catch, count: int) -> None:
        self.env, self.count = env, count
        self.frames: deque[np.ndarray] = deque(maxlen=count)

    def observation(self) -> Frames:
        return np.stack(self.frames)  # the problem

    def reset(self) -> Frames:
        self.frames.extend([self.env.reset()] * self.count)
        return self.observation()

    def step(self, action: int) -> tuple[Frames, float, bool]:
        frame, reward, done = self.env.step(action)
        self.frames.append(frame)
        return self.observation(), reward, done


def to_tensor(observations: Sequence[Frames]) -> torch.Tensor:
    return torch.from_numpy(np.array(observations)).float() / 255.0


def learn(
    net: nn.Module,
    optimizer: torch.optim.Optimizer,
    batch: list[tuple[Frames, int, float, Frames, bool]],
) -> None:
    states, actions, rewards, following, ends = zip(*batch, strict=True)
    with torch.no_grad():
        best = net(to_tensor(following)).amax(1)
    target = torch.tensor(rewards) + 0.99 * best * (1.0 - torch.tensor(ends).float())
    values = net(to_tensor(states)).gather(1, torch.tensor(actions)[:, None])[:, 0]
    loss = functional.smooth_l1_loss(values, target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def main(steps: int = 20_000, every: int = 200, batch: int = 32, size: int = 84) -> None:
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    env = FrameStack(Catch(size, rng), 4)
    net = nn.Sequential(nn.Conv2d(4, 16, 8, 4), nn.ReLU(), nn.Flatten(), nn.Linear(6400, 3))
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-4)
    memory: list[tuple[Frames, int, float, Frames, bool]] = []
    state = env.reset()
    for step in range(steps):
        action = int(rng.integers(3))
        following, reward, done = env.step(action)
        memory.append((state, action, reward, following, done))
        state = env.reset() if done else following
        if step % every == every - 1:
            learn(net, optimizer, [memory[i] for i in rng.integers(0, len(memory), batch)])
    print(f"mean reward {sum(entry[2] for entry in memory) / steps:.4f}")


if __name__ == "__main__":
    main()
