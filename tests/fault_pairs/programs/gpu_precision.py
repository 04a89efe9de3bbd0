"""Multiplies in float32 without tensor cores."""

from simulated_gpu import MS, STREAM, launch

for _ in range(20):
    launch(b"ampere_sgemm_128x64_tn", STREAM, 2 * MS)  # the problem
    launch(b"vectorized_elementwise_kernel", STREAM, MS)
