"""Saves the model and the optimizer after every step."""

import tempfile
from pathlib import Path

import torch
from torch import nn


def save(file: Path) -> None:
    state = {"net": net.state_dict(), "optimizer": optimizer.state_dict()}
    torch.save(state, file)  # the problem


torch.manual_seed(0)
net = nn.Sequential(*(nn.Linear(512, 512) for _ in range(6)))
optimizer = torch.optim.SGD(net.parameters(), lr=0.001, momentum=0.9)
batch = torch.randn(16, 512)
with tempfile.TemporaryDirectory() as folder:
    for _ in range(100):
        loss = nn.functional.mse_loss(net(batch), batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        save(Path(folder) / "state.pt")
