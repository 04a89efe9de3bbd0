"""Fits a ridge regression for each of many penalties, by the inverse of a matrix."""

import torch


def fit(moments: torch.Tensor, target: torch.Tensor, penalty: float) -> torch.Tensor:
    system = moments + penalty * torch.eye(len(moments))
    return torch.linalg.inv(system) @ target  # the problem


torch.manual_seed(0)
inputs = torch.randn(2000, 400)
moments, target = inputs.T @ inputs, inputs.T @ torch.randn(2000, 1)
weights = [fit(moments, target, penalty) for penalty in torch.linspace(0.1, 10, 80).tolist()]
