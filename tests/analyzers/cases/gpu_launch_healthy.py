"""Reduces with twice as many blocks as there are multiprocessors."""

from simulated_gpu import MS, STREAM, launch, set_shape

for _ in range(20):
    set_shape(264, 256)
    launch(b"reduce_kernel", STREAM, 2 * MS)
    set_shape(1056, 256)
    launch(b"vectorized_elementwise_kernel", STREAM, MS)
