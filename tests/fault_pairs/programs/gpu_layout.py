"""A U-Net in NCHW: cuDNN converts around each convolution."""

from simulated_gpu import MS, STREAM, launch


def convolution() -> None:
    launch(b"cudnn::ops::nchwToNhwcKernel<__half, __half, float>", STREAM, MS)  # the problem
    launch(b"sm80_xmma_fprop_implicit_gemm_f16f16", STREAM, 3 * MS)
    launch(b"cudnn::ops::nhwcToNchwKernel<__half, __half, float>", STREAM, MS)


for _ in range(20):
    convolution()
