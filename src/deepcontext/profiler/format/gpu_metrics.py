"""Metrics that every GPU collector adds, whatever the vendor.

The native core knows them by these names (`native/gpu`).
"""

from __future__ import annotations

from typing import Final

from deepcontext.profiler.format.metric import (
    GPU_TIME_NS,
    LAUNCH_COUNT,
    Aggregation,
    MetricDescriptor,
)

QUEUE_DELAY_NS: Final = MetricDescriptor(
    "queue_delay_ns",
    "ns",
    Aggregation.SUM,
    "time from the launching call to the start on the device; not of graph replays",
)
COPY_BYTES: Final = MetricDescriptor(
    "copy_bytes", "bytes", Aggregation.SUM, "bytes copied or set by the device"
)
SYNC_WAIT_NS: Final = MetricDescriptor(
    "sync_wait_ns", "ns", Aggregation.SUM, "time the host waited inside a call for the device"
)
GPU_API_NS: Final = MetricDescriptor(
    "gpu_api_ns", "ns", Aggregation.SUM, "time the host spent inside a call of the GPU's API"
)
DRIVER_ALLOC_BYTES: Final = MetricDescriptor(
    "driver_alloc_bytes",
    "bytes",
    Aggregation.SUM,
    "device memory taken from the driver; a framework's allocator takes large blocks",
)
GPU_IDLE_NS: Final = MetricDescriptor(
    "gpu_idle_ns",
    "ns",
    Aggregation.SUM,
    "time the device had nothing to do, at the call path the host was on meanwhile",
)
GPU_GAP_NS: Final = MetricDescriptor(
    "gpu_gap_ns",
    "ns",
    Aggregation.SUM,
    "time the device ran nothing although this call had given it work (latency, dependencies)",
)
EXPOSED_COMMUNICATION_NS: Final = MetricDescriptor(
    "exposed_communication_ns",
    "ns",
    Aggregation.SUM,
    "time of kernels that exchange data, while the device computed nothing",
)
STALL_SAMPLES: Final = MetricDescriptor(
    "stall_samples",
    "count",
    Aggregation.SUM,
    "samples of the kernel's instructions, by why they waited",
)
GRID_BLOCK_COUNT: Final = MetricDescriptor(
    "grid_block_count",
    "count",
    Aggregation.PROPERTY,
    "blocks of a launch; one event each time the launch shape changes",
)
BLOCK_THREAD_COUNT: Final = MetricDescriptor(
    "block_thread_count",
    "count",
    Aggregation.PROPERTY,
    "threads of a block; one event each time the launch shape changes",
)
REGISTER_COUNT: Final = MetricDescriptor(
    "register_count",
    "count",
    Aggregation.PROPERTY,
    "registers a thread; one event each time the launch shape changes",
)
SHARED_MEMORY_BYTES: Final = MetricDescriptor(
    "shared_memory_bytes",
    "bytes",
    Aggregation.PROPERTY,
    "shared memory a block; one event each time the launch shape changes",
)

GPU_METRICS: Final = (
    GPU_TIME_NS,
    LAUNCH_COUNT,
    QUEUE_DELAY_NS,
    COPY_BYTES,
    SYNC_WAIT_NS,
    GPU_API_NS,
    DRIVER_ALLOC_BYTES,
    GPU_IDLE_NS,
    GPU_GAP_NS,
    EXPOSED_COMMUNICATION_NS,
    STALL_SAMPLES,
    GRID_BLOCK_COUNT,
    BLOCK_THREAD_COUNT,
    REGISTER_COUNT,
    SHARED_MEMORY_BYTES,
)
