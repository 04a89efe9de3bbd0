"""Queues work before the GPU has finished the previous work."""

import torch
from simulated_gpu import MS, STREAM, launch

torch.manual_seed(0)
for _ in range(12):
    torch.randn(2_000).sort()
    launch(b"ampere_bf16_s16816gemm_bf16_128x128", STREAM, 20 * MS)
