"""Simulates a pendulum for a policy, with tensors of one number each."""

import torch
from torch import nn


def swing(
    angle: torch.Tensor, speed: torch.Tensor, push: float
) -> tuple[torch.Tensor, torch.Tensor]:
    force = push - 9.8 * angle.sin()  # the problem
    speed = (speed + 0.02 * force - 0.001 * speed**2 * speed.sign()).clamp(-8.0, 8.0)
    return angle + 0.02 * speed, speed


torch.manual_seed(0)
policy = nn.Linear(2, 1)
angle, speed = torch.tensor(0.5), torch.tensor(0.0)
with torch.no_grad():
    for _ in range(4000):
        push = float(policy(torch.stack((angle, speed))))
        angle, speed = swing(angle, speed, push)
