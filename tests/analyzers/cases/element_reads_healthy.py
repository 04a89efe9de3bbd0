"""Weights all samples of a batch at once."""

import torch
from torch import nn


def weights_of(labels: torch.Tensor, sure: torch.Tensor) -> torch.Tensor:
    weights = torch.ones(len(labels))
    weights = torch.where(labels == 3, 4 * weights, weights)
    return torch.where(sure > 0.9, weights / 2, weights)


torch.manual_seed(0)
net = nn.Linear(64, 5)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
inputs, labels = torch.randn(400, 64), torch.randint(5, (400,))
for _ in range(20):
    logits = net(inputs)
    weights = weights_of(labels, logits.detach().softmax(1).amax(1))
    losses = nn.functional.cross_entropy(logits, labels, reduction="none")
    (weights * losses).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
