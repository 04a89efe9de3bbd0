"""REINFORCE on a random environment: policy, returns, update."""

import torch
from torch import nn


class Policy(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 4))

    def forward(self, states: torch.Tensor) -> torch.distributions.Categorical:
        return torch.distributions.Categorical(logits=self.layers(states))


def returns_of(rewards: torch.Tensor) -> torch.Tensor:
    returns = torch.zeros_like(rewards)
    following = torch.zeros(rewards.shape[0])
    for step in reversed(range(rewards.shape[1])):
        following = rewards[:, step] + following
        returns[:, step] = following  # the problem
    return returns


def update(policy: Policy, optimizer: torch.optim.Optimizer, horizon: int) -> float:
    states = torch.randn(4, horizon, 8)
    choices = policy(states)
    actions = choices.sample()
    rewards = (actions == 0).float()
    returns = returns_of(rewards)
    returns = (returns - returns.mean()) / returns.std()
    loss = -(choices.log_prob(actions) * returns).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return rewards.mean().item()


if __name__ == "__main__":
    torch.manual_seed(0)
    policy = Policy()
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
    for episode in range(50):
        reward = update(policy, optimizer, horizon=4000)
        if episode % 10 == 0:
            print(episode, reward)
