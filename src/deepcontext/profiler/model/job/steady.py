"""The steady state of a job: what its ranks did in the steps that are steady on all of them.

Ranks are cut at different steps. A rank's part of the steady state is its windows within the steps that are
steady on all ranks; set-up is what the rank did before. The sums of both are joined like metrics, under names
with a prefix. Does not choose what is steady on a rank (`model/windows.py`). Invariant: if one rank has no
steady state, the job has none, because a job has the time of all ranks or is shown whole.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from deepcontext.profiler.format import schema, wire
from deepcontext.profiler.format.metric import (
    CALL_DURATION_NS,
    HOST_TIME_NS,
    STEP_TIME_NS,
    Aggregation,
)
from deepcontext.profiler.model.metric_rows import MetricRows
from deepcontext.profiler.model.windows import StepTimes, WindowKind, WindowTable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deepcontext.profiler.model.job.rank_row import RankRow
    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.model.profile_model import ProfileModel
    from deepcontext.profiler.model.windows import Window

    Steps = tuple[int, int]  # first and last

# Of the names of metrics.
BEFORE: Final = "before "
STEADY: Final = "steady "
_TIMES: Final = ("timed_steps", "step_total_ns", "step_minimum_ns", "step_maximum_ns", "step_m2")
_SUMMED: Final = ("wall_ns", "cpu_user_ns", "cpu_system_ns")


def is_of_part(metric: str) -> bool:
    """Return whether a name is that of a metric of set-up or the steady state."""
    return metric.startswith((BEFORE, STEADY))


def steady_steps(profile: Profile) -> list[Steps]:
    """Return the first and last step of each steady window."""
    steady = (each for each in profile.windows if each.kind is WindowKind.STEADY)
    return [(each.first_step, each.last_step) for each in steady]


def common_steps(ranks: Sequence[Sequence[Steps]]) -> Steps | None:
    """Return the steps that are steady on all ranks; None where a rank has no window within them.

    Args:
        ranks: what `steady_steps` returns for each.
    """
    if not ranks or not all(ranks):
        return None
    steps = max(each[0][0] for each in ranks), min(each[-1][1] for each in ranks)
    return (
        steps if all(any(is_within(window, steps) for window in each) for each in ranks) else None
    )


def is_within(window: Steps, steps: Steps) -> bool:
    """Return whether a window lies within some steps."""
    return steps[0] <= window[0] and window[1] <= steps[1]


def divided(profile: Profile, steps: Steps) -> tuple[Profile, Profile]:
    """Return what a rank did before, and in its windows within steps of `common_steps`."""
    steady = [
        each
        for each in profile.windows
        if each.kind is WindowKind.STEADY and is_within((each.first_step, each.last_step), steps)
    ]
    before = [each for each in profile.windows if each.number < steady[0].number]
    return profile.within(before), profile.within(steady)


def facts(part: ProfileModel) -> dict[str, Any]:
    """Return what is known of some windows of a rank besides the sums of nodes."""
    windows: Sequence[Window] = part.of_windows
    times = reduce(StepTimes.with_later, (each.times for each in windows), StepTimes())
    return {
        "first_step": windows[0].first_step,
        "steps": sum(each.steps for each in windows),
        **{name: sum(getattr(each, name) for each in windows) for name in _SUMMED},
        **_of_times(times),
    }


def part_sums(part: ProfileModel) -> dict[str, MetricRows]:
    """Return the rows of the metrics that windows have, as the section has them."""
    found = {}
    for name, rows in part.stored_metrics().items():
        is_summed = rows.descriptor.aggregation is Aggregation.SUM
        if name == STEP_TIME_NS.name or not (is_summed or name == CALL_DURATION_NS.name):
            continue
        total = rows.total
        if name == CALL_DURATION_NS.name:
            # Without the time of the calls themselves.
            total = total - part.exclusive(HOST_TIME_NS.name)[rows.node]
        found[name] = MetricRows(rows.descriptor, rows.node, rows.count, total)
    return found


def window_section(
    rows: Sequence[RankRow], sums: Mapping[str, MetricRows], node_count: int
) -> bytes | None:
    """Return the section of a job's windows, None if one of its ranks has no steady state.

    Args:
        rows: the ranks.
        sums: metrics by name; those of the parts count; `node` ascends.
        node_count: number of nodes of the tree.
    """
    if not all(row.steady for row in rows):
        return None
    first = min(row.steady["first_step"] for row in rows) - 1
    steps = round(float(np.mean([row.steady["steps"] for row in rows])))
    begin = sum(row.before["wall_ns"] for row in rows)
    end = begin + sum(row.steady["wall_ns"] for row in rows)
    messages = [
        {"first_step": 0, "end_step": first, "begin_ns": 0, "end_ns": begin}
        | _message([row.before for row in rows], BEFORE, sums),
        {"first_step": first, "end_step": first + steps, "begin_ns": begin, "end_ns": end}
        | _message([row.steady for row in rows], STEADY, sums),
    ]
    return wire.encode("WindowTable", {"windows": messages, "node_count": node_count})


def sums_of(profile: Profile) -> dict[str, MetricRows]:
    """Return the metrics of the parts of a job that was joined before; empty without a steady state."""
    table = WindowTable.of(profile)
    if table is None:
        return {}
    return {
        prefix + name: MetricRows(
            profile.metrics[name].descriptor, node.astype(np.uint32), count.astype(np.uint64), total
        )
        for number, prefix in enumerate((BEFORE, STEADY))
        for name, (node, count, total) in table.metrics(number).items()
    }


def of_steady(row: RankRow) -> RankRow:
    """Return the row of a rank with the times of its steady state."""
    names = ("operator_ns", "running_ns", "waiting_ns", "steps", *_SUMMED)
    return replace(row, **{name: row.steady[name] for name in names})


def _message(
    ranks: Sequence[Mapping[str, Any]], prefix: str, sums: Mapping[str, MetricRows]
) -> dict[str, Any]:
    times = (StepTimes(*(rank[name] for name in _TIMES)) for rank in ranks)
    return {
        **{name: sum(rank[name] for rank in ranks) for name in _SUMMED[1:]},
        **_of_times(reduce(StepTimes.with_later, times, StepTimes())),
        "metrics": [
            _rows(name.removeprefix(prefix), rows)
            for name, rows in sums.items()
            if name.startswith(prefix)
        ],
    }


def _of_times(times: StepTimes) -> dict[str, Any]:
    values = (times.count, times.total_ns, times.minimum_ns, times.maximum_ns, times.m2)
    return dict(zip(_TIMES, values, strict=True))


def _rows(name: str, rows: MetricRows) -> dict[str, Any]:
    node = np.diff(rows.node.astype(np.int64), prepend=0).astype("<u4")
    data = (node, rows.count.astype("<i8"), rows.total.astype("<i8"))
    return {"name": name} | {
        field: wire.column(kind, values.tobytes())
        for (field, kind), values in zip(schema.WINDOW_ROW_TYPES.items(), data, strict=True)
    }
