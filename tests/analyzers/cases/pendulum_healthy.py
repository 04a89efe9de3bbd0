"""Simulates a pendulum for a policy, with Python's numbers."""

import math

import torch
from torch import nn


def swing(angle: float, speed: float, push: float) -> tuple[float, float]:
    force = push - 9.8 * math.sin(angle)
    speed += 0.02 * force - 0.001 * speed * abs(speed)
    speed = min(max(speed, -8.0), 8.0)
    return angle + 0.02 * speed, speed


torch.manual_seed(0)
policy = nn.Linear(2, 1)
angle, speed = 0.5, 0.0
with torch.no_grad():
    for _ in range(4000):
        push = float(policy(torch.tensor((angle, speed))))
        angle, speed = swing(angle, speed, push)
