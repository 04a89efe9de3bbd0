"""A frontend and an engine: two processes of one job with different work and no collectives."""

import time

import torch
import torch.distributed as dist
from torch import nn


def frontend(store: dist.Store) -> None:
    for number in range(20):
        time.sleep(0.05)  # until a request comes in
        store.set(f"request {number}", "what?")
        store.get(f"answer {number}")


def engine(store: dist.Store) -> None:
    net = nn.Linear(64, 64)
    for number in range(20):
        store.get(f"request {number}")
        net(torch.randn(32, 64))
        store.set(f"answer {number}", "this")


store, rank, _ = next(dist.rendezvous("env://"))
(engine if rank else frontend)(store)
store.set(f"{rank} is done", "")
store.wait([f"{1 - rank} is done"])
