"""Metrics: what is measured at the nodes of a tree, and how values combine.

Does not know where values come from. Invariant: stored values of a `SUM` metric are exclusive to
their node; inclusive values are computed when read (`Profile.inclusive`).
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


class Aggregation(enum.IntEnum):
    """How values of one metric combine over events and over a subtree."""

    SUM = 1
    MAX = 2
    PROPERTY = 3  # describes the node itself; never summed over a subtree


@dataclass(frozen=True, slots=True)
class MetricDescriptor:
    """Name and meaning of a metric; the unit ends the name (`_ns`, `_bytes`, `_count`).

    Attributes:
        name: for example ``host_time_ns``.
        unit: ``ns``, ``bytes``, ``count`` or ``flop``.
        aggregation: how values combine.
        description: one sentence a person reads.
    """

    name: str
    unit: str
    aggregation: Aggregation
    description: str


HOST_TIME_NS = MetricDescriptor(
    "host_time_ns",
    "ns",
    Aggregation.SUM,
    "elapsed host time inside the operator or scope, without nested operators and scopes",
)
CALL_DURATION_NS = MetricDescriptor(
    "call_duration_ns",
    "ns",
    Aggregation.PROPERTY,
    "elapsed host time per call of the operator or scope, including nested operators and scopes",
)
STEP_TIME_NS = MetricDescriptor(
    "step_time_ns", "ns", Aggregation.PROPERTY, "elapsed time between the ends of two steps"
)
SAMPLED_CPU_TIME_NS = MetricDescriptor(
    "sampled_cpu_time_ns",
    "ns",
    Aggregation.SUM,
    "processor time outside operators, in Python and native code, sampled",
)
SAMPLED_WAIT_TIME_NS = MetricDescriptor(
    "sampled_wait_time_ns",
    "ns",
    Aggregation.SUM,
    "elapsed time outside operators in which the thread did not run, sampled",
)
TRACED_TIME_NS = MetricDescriptor(
    "traced_time_ns",
    "ns",
    Aggregation.SUM,
    "elapsed time outside operators, in Python and native code, from a trace, which does not say whether the "
    "thread ran or waited",
)
SAMPLED_GIL_TIME_NS = MetricDescriptor(
    "sampled_gil_time_ns",
    "ns",
    Aggregation.SUM,
    "part of sampled_cpu_time_ns in which the thread held the GIL",
)
SAMPLED_READY_TIME_NS = MetricDescriptor(
    "sampled_ready_time_ns",
    "ns",
    Aggregation.SUM,
    "part of sampled_wait_time_ns in which the thread could run and had no processor",
)
OPERATOR_READY_TIME_NS = MetricDescriptor(
    "operator_ready_time_ns",
    "ns",
    Aggregation.SUM,
    "part of the elapsed time of an operator in which the main thread could run without a processor, sampled",
)
SLOW_STEP_TIME_NS = MetricDescriptor(
    "slow_step_time_ns",
    "ns",
    Aggregation.SUM,
    "sampled time of the main thread in steps that took more than 1.5 times the median, inside and outside "
    "operators, without waits for a processor",
)
SAMPLED_GIL_WAIT_TIME_NS = MetricDescriptor(
    "sampled_gil_wait_time_ns",
    "ns",
    Aggregation.SUM,
    "part of sampled_wait_time_ns in which the thread waited for the GIL",
)
SAMPLED_LOCK_WAIT_TIME_NS = MetricDescriptor(
    "sampled_lock_wait_time_ns",
    "ns",
    Aggregation.SUM,
    "part of sampled_wait_time_ns in which the thread waited for a lock other than the GIL, or otherwise "
    "for another thread",
)
SAMPLED_PROCESS_WAIT_TIME_NS = MetricDescriptor(
    "sampled_process_wait_time_ns",
    "ns",
    Aggregation.SUM,
    "part of sampled_wait_time_ns in which the thread waited for the end of a process",
)
SAMPLED_IO_WAIT_TIME_NS = MetricDescriptor(
    "sampled_io_wait_time_ns",
    "ns",
    Aggregation.SUM,
    "part of sampled_wait_time_ns in which the thread waited in a system call for a file, a socket or a "
    "pipe, or for a timer beside them",
)
SAMPLED_COLLECTIVE_WAIT_TIME_NS = MetricDescriptor(
    "sampled_collective_wait_time_ns",
    "ns",
    Aggregation.SUM,
    "part of sampled_wait_time_ns in which the thread waited for a lock or a socket while a collective was "
    "in flight",
)
SAMPLED_SLEEP_TIME_NS = MetricDescriptor(
    "sampled_sleep_time_ns",
    "ns",
    Aggregation.SUM,
    "part of sampled_wait_time_ns in which the thread slept",
)
SAMPLED_STEP = MetricDescriptor(
    "sampled_step_count",
    "count",
    Aggregation.PROPERTY,
    "steps of the program that had begun when a sample was taken, counted by calls of optimizers and "
    "marks of steps",
)
# For programs without steps: it stands still while one line works for long, and rises in a loop.
SAMPLED_OPERATORS = MetricDescriptor(
    "sampled_operators_count",
    "count",
    Aggregation.PROPERTY,
    "operators of the thread that had begun when a sample was taken",
)
GC_TIME_NS = MetricDescriptor(
    "gc_time_ns",
    "ns",
    Aggregation.SUM,
    "elapsed time of Python's garbage collector, at the line that it interrupted or that called it; "
    "collections of 20 us or more",
)
BUILT_GRAPH = MetricDescriptor(
    "built_graph_count",
    "count",
    Aggregation.PROPERTY,
    "above zero where the operator built a graph for a backward pass: gradients were enabled and an "
    "input required them",
)


def _input_types(name: str, what: str) -> MetricDescriptor:
    text = f"calls with {what} among the inputs, in short windows of a recording without shapes"
    return MetricDescriptor(name, "count", Aggregation.PROPERTY, text)


# Of tensors with dimensions; single numbers do not count.
FLOAT_INPUTS = _input_types("float_input_count", "floating-point tensors")
FLOAT64_INPUTS = _input_types("float64_input_count", "float64 tensors")
FLOAT16_INPUTS = _input_types("float16_input_count", "float16 tensors")
BFLOAT16_INPUTS = _input_types("bfloat16_input_count", "bfloat16 tensors")
WIDENED_INPUTS = _input_types("widened_input_count", "float64 and narrower floating-point tensors")
INTEGER_INPUTS = _input_types(
    "integer_input_count", "integers in two or more dimensions and no floating-point tensors"
)
INPUT_TYPES = (
    FLOAT_INPUTS,
    FLOAT64_INPUTS,
    FLOAT16_INPUTS,
    BFLOAT16_INPUTS,
    WIDENED_INPUTS,
    INTEGER_INPUTS,
)
LOSS_TARGETS = MetricDescriptor(
    "loss_target_count",
    "count",
    Aggregation.PROPERTY,
    "targets of a loss on the host that were looked at, in short windows of a recording without shapes",
)
IGNORED_TARGETS = MetricDescriptor(
    "ignored_target_count",
    "count",
    Aggregation.PROPERTY,
    "of the targets that were looked at, those equal to the loss's ignore_index",
)
INDICES = MetricDescriptor(
    "index_count",
    "count",
    Aggregation.PROPERTY,
    "indices of embeddings on the host that were looked at, in two dimensions and in short windows of a "
    "recording without shapes",
)
PADDING = MetricDescriptor(
    "padding_count",
    "count",
    Aggregation.PROPERTY,
    "of the indices that were looked at, those that most rows end with, or begin with, as far as they repeat",
)
SHARED_PADDING = MetricDescriptor(
    "shared_padding_count",
    "count",
    Aggregation.PROPERTY,
    "of the padding among indices, what is at a position where each row has padding",
)
COMPARISON_WINDOW = MetricDescriptor(
    "comparison_window_count",
    "count",
    Aggregation.PROPERTY,
    "one value for each call whose inputs were compared with those of earlier calls on the same path, by a "
    "few elements on the host: the number of short windows that had begun then",
)
REPEATED_INPUTS = MetricDescriptor(
    "repeated_input_count",
    "count",
    Aggregation.PROPERTY,
    "of the calls whose inputs were compared, those that had the inputs of an earlier call",
)
FLOPS = MetricDescriptor(
    "flops", "flop", Aggregation.SUM, "floating point operations, from the shapes of the operations"
)
BYTES_MOVED = MetricDescriptor(
    "bytes_moved",
    "bytes",
    Aggregation.SUM,
    "bytes that operators read and write at least, from the shapes and types of their inputs",
)
# Times of devices: collectors of GPUs and of JAX measure them, many readers ask for them.
GPU_TIME_NS = MetricDescriptor(
    "gpu_time_ns", "ns", Aggregation.SUM, "time the device spent on a kernel, copy or memset"
)
LAUNCH_COUNT = MetricDescriptor(
    "launch_count", "count", Aggregation.SUM, "kernels, copies and memsets that ran"
)
DEVICE_TIME_NS = MetricDescriptor(
    "device_time_ns",
    "ns",
    Aggregation.SUM,
    "time inside operations of compiled programs, from issue to completion, summed over XLA's "
    "threads and devices; sampled, scaled to the exact number of launches",
)
PROGRAM_LAUNCH_COUNT = MetricDescriptor(
    "program_launch_count",
    "count",
    Aggregation.SUM,
    "executions of compiled programs launched from here",
)
# Metrics of every session; a collector adds its metrics to a profile by descriptor.
KNOWN_METRICS: tuple[MetricDescriptor, ...] = (HOST_TIME_NS, CALL_DURATION_NS, STEP_TIME_NS)
# Names that metrics had in older profiles, with the names they have now. Before format 1.2 the elapsed
# time of operators was called processor time.
RENAMED: Mapping[str, str] = {"cpu_time_ns": HOST_TIME_NS.name}
