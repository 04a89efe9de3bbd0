"""Instance norm of a U-Net on a GPU with 64 threads a wavefront, in blocks made for 32."""

from simulated_gpu import MS, STREAM, launch, set_shape

for _ in range(20):
    set_shape(512, 32)
    launch(b"batch_norm_collect_statistics_kernel", STREAM, 2 * MS)  # the problem
    set_shape(1056, 256)
    launch(b"miopenSp3AsmConv", STREAM, 2 * MS)
