"""Takes batches out of a tensor."""

import torch
from torch import nn

torch.manual_seed(0)
table = torch.randn(4000, 32)
net = nn.Sequential(nn.Linear(32, 256), nn.ReLU(), nn.Linear(256, 32))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for _ in range(3):
    for chosen in torch.randperm(len(table)).split(200):
        rows = table[chosen]
        loss = nn.functional.mse_loss(net(rows), rows)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
