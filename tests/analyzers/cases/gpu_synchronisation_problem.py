"""Waits for the loss of every step."""

from simulated_gpu import MS, STREAM, launch, synchronize

for _ in range(20):
    launch(b"ampere_bf16_s16816gemm_bf16_128x128", STREAM, 4 * MS)
    synchronize(4 * MS)  # the problem
