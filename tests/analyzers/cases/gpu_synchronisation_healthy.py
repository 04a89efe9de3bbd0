"""Reads its accumulated sum once, long after the GPU has computed it."""

import time

from simulated_gpu import MS, STREAM, US, launch, synchronize

for _ in range(20):
    launch(b"ampere_bf16_s16816gemm_bf16_128x128", STREAM, 4 * MS)
    time.sleep(0.004)  # other work on the host
synchronize(10 * US)
