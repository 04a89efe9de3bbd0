"""An RMSNorm's cast kernel whose instructions wait for constants, as published."""

from simulated_gpu import MS, STREAM, launch, load_module, stall

load_module()
for _ in range(20):
    launch(b"nvjet_gemm", STREAM, MS)
    launch(b"vectorized_elementwise_kernel", STREAM, MS)  # the problem
stall(b"vectorized_elementwise_kernel", b"imc_miss", 700, 41)
stall(b"vectorized_elementwise_kernel", b"long_scoreboard", 200, 41)
stall(b"vectorized_elementwise_kernel", b"wait", 100, 43)
stall(b"vectorized_elementwise_kernel", b"selected", 2000, 43)
