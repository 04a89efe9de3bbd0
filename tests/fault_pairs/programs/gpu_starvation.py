"""Prepares each batch while the GPU waits."""

import torch
from simulated_gpu import MS, STREAM, launch

torch.manual_seed(0)
for _ in range(12):
    torch.randn(200_000).sort()  # some ms on the host
    launch(b"ampere_bf16_s16816gemm_bf16_128x128", STREAM, 2 * MS)  # the problem
