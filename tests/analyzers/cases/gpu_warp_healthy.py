"""The same norm in blocks of whole wavefronts."""

from simulated_gpu import MS, STREAM, launch, set_shape

for _ in range(20):
    set_shape(512, 64)
    launch(b"batch_norm_collect_statistics_kernel", STREAM, 2 * MS)
    set_shape(1056, 256)
    launch(b"miopenSp3AsmConv", STREAM, 2 * MS)
