"""Answers requests one by one: every kernel has some blocks, on a GPU of 132 multiprocessors."""

from simulated_gpu import MS, STREAM, launch, set_shape

KERNELS = (b"sgemm_32x32_nn", b"layer_norm_kernel", b"softmax_forward", b"gelu_kernel")


def answer(requests: int) -> None:
    for place, kernel in enumerate(KERNELS):
        set_shape(requests * (4 + place), 256)
        launch(kernel, STREAM, MS)  # the problem


for _ in range(32):
    answer(1)
