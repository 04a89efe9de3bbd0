"""Collates batches from the rows of a tensor."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
table = torch.randn(4000, 32)
net = nn.Sequential(nn.Linear(32, 256), nn.ReLU(), nn.Linear(256, 32))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for _ in range(3):
    for (rows,) in DataLoader(TensorDataset(table), batch_size=200, shuffle=True):  # the problem
        loss = nn.functional.mse_loss(net(rows), rows)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
