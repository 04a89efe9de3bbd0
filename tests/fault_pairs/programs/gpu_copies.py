"""Copies each batch from pageable memory while nothing else runs."""

from simulated_gpu import MS, STREAM, copy, launch, set_shape

set_shape(1056, 256)
for _ in range(20):
    copy(b"HtoD", 50_000_000, 4 * MS, 0)  # the problem
    launch(b"ampere_bf16_s16816gemm_bf16_128x128", STREAM, 4 * MS)
