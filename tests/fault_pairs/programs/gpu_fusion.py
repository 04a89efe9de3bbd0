"""A loss of many short kernels."""

from simulated_gpu import STREAM, US, launch


def loss() -> None:
    launch(b"sub_kernel", STREAM, 5 * US)  # the problem
    launch(b"exp_kernel", STREAM, 5 * US)
    launch(b"sum_kernel", STREAM, 5 * US)
    launch(b"log_kernel", STREAM, 5 * US)
    launch(b"mul_kernel", STREAM, 5 * US)
    launch(b"where_kernel", STREAM, 5 * US)


for _ in range(800):
    loss()
