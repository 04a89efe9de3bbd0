"""The profile of some windows of a run: the same tree, with the sums of these windows.

Metrics that add up, and durations of calls, are sums over the windows; their extremes and their spread are
not known for a part of a run. Estimates for the whole run, such as times inside compiled JAX programs, are
divided by the calls in the windows. All other metrics describe nodes (peaks, properties) and keep the values
of the whole run, as do the trust report and most sections.
"""

from __future__ import annotations

import dataclasses
import json
from functools import partial, reduce
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np

from deepcontext.profiler.format import step_source
from deepcontext.profiler.format.metric import (
    CALL_DURATION_NS,
    GPU_TIME_NS,
    LAUNCH_COUNT,
    STEP_TIME_NS,
    Aggregation,
)
from deepcontext.profiler.format.node_sections import WINDOWS
from deepcontext.profiler.model.metric_rows import MetricRows
from deepcontext.profiler.model.metric_table import DeferredRows, MetricTable
from deepcontext.profiler.model.windows import StepTimes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from deepcontext.profiler.format.metric import MetricDescriptor
    from deepcontext.profiler.model.profile_model import ProfileModel
    from deepcontext.profiler.model.run_info import RunInfo
    from deepcontext.profiler.model.windows import Window, WindowTable

    Ints = npt.NDArray[np.int64]
    Model = TypeVar("Model", bound=ProfileModel)

# Written when a profile is written, from the number of times that each kernel and copy has.
_DERIVED: Final = {LAUNCH_COUNT.name: GPU_TIME_NS.name}
# Findings that a profile holds are about the whole run.
_OF_RUN: Final = {WINDOWS, "findings"}


def profile_within(profile: Model, table: WindowTable, windows: Sequence[Window]) -> Model:
    """Return the profile of these windows, in order of time."""
    chosen = tuple(sorted(windows, key=lambda each: each.number))
    stored = profile.stored_metrics()
    metrics: dict[str, MetricRows | DeferredRows] = {}
    for descriptor in MetricTable.of(stored).descriptors():
        metrics[descriptor.name] = DeferredRows(
            descriptor, partial(_rows, profile, table, descriptor, chosen)
        )
    return dataclasses.replace(
        profile,
        metrics=MetricTable(metrics),
        run=_run(profile.run, chosen),
        sections=_sections(profile.sections, chosen),
        of_windows=chosen,
        whole=profile.whole or profile,
    )


def _rows(
    profile: ProfileModel,
    table: WindowTable,
    descriptor: MetricDescriptor,
    windows: Sequence[Window],
) -> MetricRows:
    name, numbers = descriptor.name, [each.number for each in windows]
    whole = profile.metrics[name]
    if name == STEP_TIME_NS.name:
        return _step_times(descriptor, windows)
    if descriptor.aggregation is not Aggregation.SUM and name != CALL_DURATION_NS.name:
        return whole
    if name in table.estimated or name in _DERIVED:
        share = _shares(profile, table, _DERIVED.get(name, CALL_DURATION_NS.name), numbers)
        kept = np.flatnonzero(share[whole.node] > 0)
        node = whole.node[kept]
        count = np.maximum(np.rint(whole.count[kept] * share[node]), 1).astype(np.uint64)
        total = np.rint(whole.total[kept] * share[node]).astype(np.int64)
        return MetricRows(descriptor, node, count, total)
    counts, totals = table.sums(name, numbers)
    kept = np.flatnonzero((counts > 0) | (totals > 0))
    # A call that a cut divides has time in two windows, and is counted in one.
    count = np.maximum(counts[kept], 1).astype(np.uint64)
    return MetricRows(descriptor, kept.astype(np.uint32), count, totals[kept])


def _shares(
    profile: ProfileModel, table: WindowTable, metric: str, numbers: Sequence[int]
) -> npt.NDArray[np.float64]:
    """Return the windows' share of each node's events, that of the nearest node above where it has none."""
    if metric not in profile.metrics:
        return np.zeros(len(profile.tree))
    counts, _ = table.sums(metric, numbers)
    whole = profile.counts(metric)
    nearest = profile.tree.nearest(whole > 0)
    shares = np.divide(counts, whole, out=np.zeros(len(whole)), where=whole > 0)
    return np.where(nearest >= 0, shares[nearest], 0.0)


def _step_times(descriptor: MetricDescriptor, windows: Sequence[Window]) -> MetricRows:
    times = reduce(StepTimes.with_later, (each.times for each in windows), StepTimes())
    size = 1 if times.count else 0
    rows = MetricRows(
        descriptor,
        np.zeros(size, np.uint32),
        np.full(size, times.count, np.uint64),
        np.full(size, times.total_ns, np.int64),
    )
    if any(each.times.count and not each.times.maximum_ns for each in windows):
        return rows
    return dataclasses.replace(
        rows,
        minimum=np.full(size, times.minimum_ns, np.int64),
        maximum=np.full(size, times.maximum_ns, np.int64),
        m2=np.full(size, times.m2, np.float64),
    )


def _run(run: RunInfo, windows: Sequence[Window]) -> RunInfo:
    return dataclasses.replace(
        run,
        start_unix_ns=run.start_unix_ns + (windows[0].begin_ns if windows else 0),
        wall_ns=sum(each.wall_ns for each in windows),
        cpu_user_ns=sum(each.cpu_user_ns for each in windows),
        cpu_system_ns=sum(each.cpu_system_ns for each in windows),
        steps=sum(each.steps for each in windows) if run.steps else 0,
    )


def _sections(sections: Mapping[str, bytes], windows: Sequence[Window]) -> dict[str, bytes]:
    kept = {name: payload for name, payload in sections.items() if name not in _OF_RUN}
    if step_source.SECTION in kept:
        said = json.loads(kept[step_source.SECTION])
        said["count"] = sum(each.steps for each in windows)
        for whole in ("bins", "parts", "slowest", "slow"):
            said.pop(whole, None)
        kept[step_source.SECTION] = json.dumps(said).encode()
    return kept
