"""Answers 32 requests together; a collective has few blocks on purpose."""

from simulated_gpu import MS, STREAM, launch, set_shape

KERNELS = (b"sgemm_32x32_nn", b"layer_norm_kernel", b"softmax_forward", b"gelu_kernel")
COLLECTIVES = (b"ncclDevKernel_AllReduce_Sum_f32_RING_LL", b"ncclDevKernel_Broadcast_RING_LL")


def answer(requests: int) -> None:
    for place, kernel in enumerate(KERNELS):
        set_shape(requests * (5 + place), 256)
        launch(kernel, STREAM, MS)
    for collective in COLLECTIVES:
        set_shape(16, 512)
        launch(collective, STREAM, 4 * MS)


for _ in range(10):
    answer(32)
