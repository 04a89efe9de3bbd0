"""Plays by a policy: each step depends on the previous action, so that steps cannot be batched."""

import torch
from torch import nn

torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 2))
optimizer = torch.optim.SGD(policy.parameters(), lr=0.1)
for _ in range(6):
    state, scores = torch.randn(4), []
    for _ in range(40):
        choice = torch.distributions.Categorical(logits=policy(state))
        action = choice.sample()
        scores.append(choice.log_prob(action))
        state = torch.tanh(state + action)
    torch.stack(scores).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
