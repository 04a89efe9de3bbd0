"""Waits for the loss of every step, and prepares the next batch only then."""

import torch
from simulated_gpu import MS, STREAM, launch, synchronize

torch.manual_seed(0)
for _ in range(20):
    torch.randn(20_000).sort()  # some of a ms on the host
    launch(b"ampere_bf16_s16816gemm_bf16_128x128", STREAM, 4 * MS)
    synchronize(4 * MS)  # the problem
