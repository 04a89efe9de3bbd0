"""A profile with the sums of some of its nodes only, or with those of another profile added.

Metrics that do not add up describe nodes, and stay. Invariant: the sums of the nodes in a mask and of those
outside are those of the profile.
"""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from deepcontext.profiler.format.metric import CALL_DURATION_NS, STEP_TIME_NS, Aggregation
from deepcontext.profiler.model.elapsed import ELAPSED_TIME_NS
from deepcontext.profiler.model.metric_rows import MetricRows
from deepcontext.profiler.model.metric_table import DeferredRows, MetricTable

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from deepcontext.profiler.format.metric import MetricDescriptor
    from deepcontext.profiler.model.profile_model import ProfileModel

    Mask = npt.NDArray[np.bool_]
    Model = TypeVar("Model", bound=ProfileModel)


def of_nodes(profile: Model, nodes: Mask, wall_ns: int) -> Model:
    """Return the same profile with the sums of these nodes only.

    Args:
        profile: the profile.
        nodes: the nodes, shape (nodes of the tree,).
        wall_ns: elapsed time of what is left.
    """

    def rows(descriptor: MetricDescriptor) -> MetricRows:
        whole = profile.metrics[descriptor.name]
        total = whole.total
        if descriptor.name == CALL_DURATION_NS.name and ELAPSED_TIME_NS.name in profile.metrics:
            # A call takes less without the nodes below that are left out.
            elapsed = profile.exclusive(ELAPSED_TIME_NS.name)
            total = total - profile.tree.inclusive(np.where(nodes, 0, elapsed))[whole.node]
        kept = nodes[whole.node]
        total = np.maximum(total[kept], 0)
        return MetricRows(descriptor, whole.node[kept], whole.count[kept], total)

    return _with_rows(profile, rows, wall_ns)


def together(profile: Model, other: Model) -> Model:
    """Return a profile with the sums of two parts of one run."""

    def rows(descriptor: MetricDescriptor) -> MetricRows:
        size = len(profile.tree)
        count, total = np.zeros(size, np.uint64), np.zeros(size, np.int64)
        for each in (profile.metrics[descriptor.name], other.metrics[descriptor.name]):
            count[each.node] += each.count
            total[each.node] += each.total
        node = np.flatnonzero(count)
        return MetricRows(descriptor, node.astype(np.uint32), count[node], total[node])

    return _with_rows(profile, rows, profile.run.wall_ns + other.run.wall_ns)


def _with_rows(
    profile: Model, rows: Callable[[MetricDescriptor], MetricRows], wall_ns: int
) -> Model:
    """Return a profile with other rows of the metrics that add up over nodes."""
    metrics: dict[str, MetricRows | DeferredRows] = {}
    for each in MetricTable.of(profile.stored_metrics()).descriptors():
        adds_up = each.aggregation is Aggregation.SUM or each.name == CALL_DURATION_NS.name
        is_changed = adds_up and each.name != STEP_TIME_NS.name
        compute = (
            partial(rows, each) if is_changed else partial(profile.metrics.__getitem__, each.name)
        )
        metrics[each.name] = DeferredRows(each, compute)
    run = dataclasses.replace(profile.run, wall_ns=wall_ns)
    return dataclasses.replace(profile, metrics=MetricTable(metrics), run=run)
