"""A policy learns to balance a pole; the environment is plain NumPy."""

import numpy as np
import torch


class Pole:
    def reset(self) -> np.ndarray:
        self.state = np.random.default_rng(0).normal(0, 0.05, 4)
        return self.state

    def step(self, action: int) -> tuple[np.ndarray, float, bool]:
        x, v, angle, spin = self.state
        force = 10.0 if action else -10.0
        push = (force + 0.05 * spin**2 * np.sin(angle)) / 1.1
        turn = (9.8 * np.sin(angle) - np.cos(angle) * push) / (
            0.5 * (4 / 3 - 0.1 * np.cos(angle) ** 2)
        )
        move = push - 0.05 * turn * np.cos(angle)
        self.state = np.array([
            x + 0.02 * v,
            v + 0.02 * move,
            angle + 0.02 * spin,
            spin + 0.02 * turn,
        ])
        return self.state, 1.0, bool(abs(self.state[0]) > 2.4 or abs(self.state[2]) > 0.2)


def episode(policy: torch.nn.Module, pole: Pole) -> tuple[list[torch.Tensor], list[float]]:
    state, chances, rewards = pole.reset(), [], []
    for _ in range(200):
        logits = policy(torch.as_tensor(state, dtype=torch.float32))
        choice = torch.distributions.Categorical(logits=logits)
        action = choice.sample()
        chances.append(choice.log_prob(action))
        state, reward, is_over = pole.step(int(action))
        rewards.append(reward)
        if is_over:
            break
    return chances, rewards


def main() -> None:
    torch.manual_seed(0)
    policy = torch.nn.Sequential(torch.nn.Linear(4, 32), torch.nn.Tanh(), torch.nn.Linear(32, 2))
    optimizer = torch.optim.Adam(policy.parameters(), lr=0.01)
    pole = Pole()
    for _ in range(150):
        chances, rewards = episode(policy, pole)
        returns = torch.tensor(np.cumsum(rewards[::-1])[::-1].copy(), dtype=torch.float32)
        loss = -(torch.stack(chances) * (returns - returns.mean())).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"{len(rewards)} steps")


if __name__ == "__main__":
    main()
