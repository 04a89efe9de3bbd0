"""Weights the samples of a batch one by one, by operators on single elements."""

import torch
from torch import nn


def weights_of(labels: torch.Tensor, sure: torch.Tensor) -> torch.Tensor:
    weights = torch.ones(len(labels))
    for place in range(len(labels)):
        if labels[place] == 3:  # the problem
            weights[place] *= 4
        if sure[place] > 0.9:
            weights[place] /= 2
    return weights


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
