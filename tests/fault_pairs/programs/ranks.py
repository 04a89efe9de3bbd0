"""Two ranks train together; the storage of one is slow."""

import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def load(rank: int) -> torch.Tensor:
    time.sleep(0.1 if rank == 1 else 0.005)  # the problem
    return torch.randn(32, 64)


dist.init_process_group("gloo")
net = DistributedDataParallel(nn.Linear(64, 64))
for _ in range(40):
    net(load(dist.get_rank())).square().mean().backward()
dist.destroy_process_group()
