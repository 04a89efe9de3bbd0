import math

import torch
from torch import nn
from torch.distributions import Categorical


class CartPole:
    def __init__(self, limit: int) -> None:
        self.limit = limit

    def reset(self) -> torch.Tensor:
        self.state = (torch.rand(4) - 0.5) * 0.1  # the problem
        self.steps = 0
        return self.state

    def step(self, action: int) -> tuple[torch.Tensor, float, bool]:
        x, speed, angle, spin = self.state
        force = 10.0 if action else -10.0
        sine, cosine = angle.sin(), angle.cos()
        push = (force + 0.05 * spin**2 * sine) / 1.1
        turn = (9.8 * sine - cosine * push) / (0.5 * (4.0 / 3.0 - 0.1 * cosine**2 / 1.1))
        pull = push - 0.05 * turn * cosine / 1.1
        x, speed = x + 0.02 * speed, speed + 0.02 * pull
        angle, spin = angle + 0.02 * spin, spin + 0.02 * turn
        self.state = torch.stack((x, speed, angle, spin))
        self.steps += 1
        fallen = bool(x.abs() > 2.4 or angle.abs() > 12 * math.pi / 180)
        return self.state, 1.0, fallen or self.steps >= self.limit


def collect(env: CartPole, policy: nn.Module, batch: int) -> tuple[torch.Tensor, ...]:
    states, actions, returns = list[torch.Tensor](), list[int](), list[int]()
    while len(states) < batch:
        state, done, rewards = env.reset(), False, 0
        while not done:
            with torch.no_grad():
                logits = policy(state)
            action = int(torch.bernoulli(torch.sigmoid(logits[1] - logits[0])))
            states.append(state)
            actions.append(action)
            state, _, done = env.step(action)
            rewards += 1
        returns.extend(range(rewards, 0, -1))
    return torch.stack(states), torch.tensor(actions), torch.tensor(returns, dtype=torch.float32)


def main(updates: int = 20, batch: int = 1200) -> None:
    torch.manual_seed(0)
    policy = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 2))
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
    env = CartPole(200)
    for update in range(updates):
        states, actions, returns = collect(env, policy, batch)
        advantage = (returns - returns.mean()) / (returns.std() + 1e-6)
        loss = -(Categorical(logits=policy(states)).log_prob(actions) * advantage).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if update % 5 == 4:
            print(f"update {update}: mean return {returns.mean().item():.1f}")


if __name__ == "__main__":
    main()
