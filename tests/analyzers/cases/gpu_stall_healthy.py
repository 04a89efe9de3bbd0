"""A cast kernel that mostly issues, and whose few waits have no one reason."""

from simulated_gpu import MS, STREAM, launch, load_module, stall

load_module()
for _ in range(20):
    launch(b"nvjet_gemm", STREAM, MS)
    launch(b"vectorized_elementwise_kernel", STREAM, MS)
stall(b"vectorized_elementwise_kernel", b"imc_miss", 60, 41)
stall(b"vectorized_elementwise_kernel", b"long_scoreboard", 60, 41)
stall(b"vectorized_elementwise_kernel", b"wait", 60, 43)
stall(b"vectorized_elementwise_kernel", b"barrier", 60, 43)
stall(b"vectorized_elementwise_kernel", b"selected", 2000, 43)
