"""Writes a file for each clip of a batch, as copies of the parts."""

import tempfile
from pathlib import Path

import torch
from torch import nn


def write(folder: Path, batch: int, clips: torch.Tensor) -> None:
    for place in range(len(clips)):
        torch.save(clips[place].clone(), folder / f"{batch}-{place}.pt")


torch.manual_seed(0)
net = nn.Conv1d(1, 32, 9, stride=4)
with tempfile.TemporaryDirectory() as folder, torch.inference_mode():
    for batch in range(10):
        write(Path(folder), batch, net(torch.randn(32, 1, 4000)))
