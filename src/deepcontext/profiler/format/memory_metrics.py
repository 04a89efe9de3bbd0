"""Metrics of memory that frameworks allocate, by the call path that allocated it.

The native core uses the same names (`native/core/allocation_ledger.cpp`). Each metric exists twice:
for memory of the host, and with the prefix ``gpu_`` for memory of devices.
"""

from __future__ import annotations

from typing import Final

from deepcontext.profiler.format.metric import Aggregation, MetricDescriptor

GPU_PREFIX: Final = "gpu_"
# Numbered as in the native core; 0 is "not known".
ROLES: Final = ("parameter", "gradient", "optimizer", "activation", "input", "temporary")
PARAMETER, GRADIENT, OPTIMIZER = 1, 2, 3

_HOST: Final = (
    MetricDescriptor("alloc_bytes", "bytes", Aggregation.SUM, "bytes allocated over the run"),
    MetricDescriptor(
        "live_bytes", "bytes", Aggregation.SUM, "bytes allocated here and not freed until now"
    ),
    MetricDescriptor(
        "peak_bytes",
        "bytes",
        Aggregation.SUM,
        "bytes allocated here that were held when the program held the most",
    ),
    MetricDescriptor(
        "own_peak_bytes",
        "bytes",
        Aggregation.MAX,
        "the most bytes allocated here that were held at one time",
    ),
    MetricDescriptor(
        "growth_bytes",
        "bytes",
        Aggregation.SUM,
        "bytes allocated here and held at the end of the last step, minus those held at the end of "
        "an earlier step; the count is the number of steps in which they grew",
    ),
    *(
        MetricDescriptor(
            f"peak_{role}_bytes",
            "bytes",
            Aggregation.SUM,
            f"the part of peak_bytes that was {meaning}",
        )
        for role, meaning in zip(
            ROLES,
            (
                "parameters",
                "gradients of parameters",
                "state of an optimizer",
                "activations: made in a forward pass, still held in a backward pass",
                "input: from a data loader, or copied to the device outside of modules",
                "temporary: freed by the stage that made it",
            ),
            strict=True,
        )
    ),
)

METRICS: Final = tuple(
    MetricDescriptor(
        prefix + metric.name, metric.unit, metric.aggregation, f"{place}: {metric.description}"
    )
    for prefix, place in (("", "host memory"), (GPU_PREFIX, "device memory"))
    for metric in _HOST
)
# JAX's arrays have these metrics, too.
GROWTH: Final = tuple(metric for metric in METRICS if metric.name.endswith("growth_bytes"))
