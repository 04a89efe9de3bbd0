"""Multiplies in TF32."""

from simulated_gpu import MS, STREAM, launch

for _ in range(20):
    launch(b"cutlass_80_tensorop_s1688gemm_128x128_32x3_tn_align4", STREAM, 2 * MS)
    launch(b"vectorized_elementwise_kernel", STREAM, MS)
