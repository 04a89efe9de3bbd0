"""Elapsed time as one metric: time in operators plus time between operators, sampled or from a trace.

Derived when a caller asks for it, never stored. Invariant: over the nodes of a thread that was
sampled throughout, the metric adds up to the time the thread was observed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.format.metric import (
    HOST_TIME_NS,
    SAMPLED_CPU_TIME_NS,
    SAMPLED_WAIT_TIME_NS,
    TRACED_TIME_NS,
    Aggregation,
    MetricDescriptor,
)
from deepcontext.profiler.model.metric_rows import MetricRows
from deepcontext.profiler.model.tree import NO_NODE

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from deepcontext.profiler.model.frame_table import FrameTable
    from deepcontext.profiler.model.tree import Tree

ELAPSED_TIME_NS: Final = MetricDescriptor(
    "elapsed_time_ns",
    "ns",
    Aggregation.SUM,
    "elapsed time of each thread: in operators, and between them running or waiting (sampled, or traced)",
)
_SAMPLED: Final = (SAMPLED_CPU_TIME_NS.name, SAMPLED_WAIT_TIME_NS.name)
_BETWEEN: Final = (*_SAMPLED, TRACED_TIME_NS.name)


def is_sampled(metrics: Mapping[str, MetricRows]) -> bool:
    """Return whether the metrics hold samples of time between operators."""
    return any(name in metrics for name in _SAMPLED)


def is_known_between(metrics: Mapping[str, MetricRows]) -> bool:
    """Return whether the metrics hold time between operators, sampled or from a trace."""
    return any(name in metrics for name in _BETWEEN)


def in_operators(
    frames: FrameTable, tree: Tree, metrics: Mapping[str, MetricRows]
) -> npt.NDArray[np.int64]:
    """Return the host time of operators by node, shape (nodes,), int64.

    Host time of scopes outside operators is left out, because that time is sampled.
    """
    values = np.zeros(len(tree), np.int64)
    rows = metrics.get(HOST_TIME_NS.name)
    if rows is not None:
        values[rows.node] = rows.total
    is_operator = np.asarray(frames.kind[tree.frame] == FrameKind.OPERATOR)
    return np.where(tree.nearest(is_operator) != NO_NODE, values, 0)


def elapsed_rows(frames: FrameTable, tree: Tree, metrics: Mapping[str, MetricRows]) -> MetricRows:
    """Return the rows of `ELAPSED_TIME_NS`; `count` is the number of calls and samples."""
    total = in_operators(frames, tree, metrics)
    count = np.zeros(len(tree), np.uint64)
    for name in (HOST_TIME_NS.name, *_BETWEEN):
        rows = metrics.get(name)
        if rows is not None:
            count[rows.node] += rows.count
            if name in _BETWEEN:
                total[rows.node] += rows.total
    node = np.flatnonzero(total).astype(np.uint32)
    return MetricRows(ELAPSED_TIME_NS, node, count[node], total[node])
