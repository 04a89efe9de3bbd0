"""Reduces with eight blocks on a GPU of 132 multiprocessors."""

from simulated_gpu import MS, STREAM, launch, set_shape

for _ in range(20):
    set_shape(8, 256)
    launch(b"reduce_kernel", STREAM, 2 * MS)  # the problem
    set_shape(1056, 256)
    launch(b"vectorized_elementwise_kernel", STREAM, MS)
