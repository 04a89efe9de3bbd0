"""The windows of a merged profile: the steady states of its ranks, aligned by the numbers of steps.

Ranks are cut at different steps. Set-up is what all ranks did before the first step that is steady on each of
them; the steady window is what they did from this step on, up to the last one that all have; both in whole
windows of each rank. Does not choose what is steady (`windows.py`). Invariant: if one rank has no steady
state, the job has no windows, because it has the time of all ranks or is shown whole.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from deepcontext.profiler.format import schema, wire
from deepcontext.profiler.format.metric import (
    CALL_DURATION_NS,
    HOST_TIME_NS,
    STEP_TIME_NS,
    Aggregation,
)
from deepcontext.profiler.model.windows import StepTimes, WindowKind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.model.windows import Window

    Ints = npt.NDArray[np.int64]
    Sums = tuple[Ints, Ints, Ints]


def merged_windows(
    profiles: Sequence[Profile], offsets: Sequence[int], node_count: int
) -> bytes | None:
    """Return the section of the windows, None where a rank has no steady state.

    Args:
        profiles: one for each rank.
        offsets: node of the merged profile that each rank's first node is.
        node_count: number of nodes of the merged profile.
    """
    steady = _aligned(profiles)
    if not all(steady):
        return None
    before = [
        [each for each in profile.windows if each.number < windows[0].number]
        for profile, windows in zip(profiles, steady, strict=True)
    ]
    first = min(windows[0].first_step for windows in steady) - 1
    steps = round(float(np.mean([sum(each.steps for each in windows) for windows in steady])))
    begin = sum(each.wall_ns for windows in before for each in windows)
    messages = [
        {"first_step": 0, "end_step": first, "begin_ns": 0, "end_ns": begin}
        | _message(profiles, before, offsets),
        {
            "first_step": first,
            "end_step": first + steps,
            "begin_ns": begin,
            "end_ns": begin + sum(each.wall_ns for windows in steady for each in windows),
        }
        | _message(profiles, steady, offsets),
    ]
    return wire.encode("WindowTable", {"windows": messages, "node_count": node_count})


def _aligned(profiles: Sequence[Profile]) -> list[list[Window]]:
    """Return the steady windows of each rank that begin and end in steps that are steady on all."""
    steady = [
        [each for each in profile.windows if each.kind is WindowKind.STEADY] for profile in profiles
    ]
    if not all(steady):
        return steady
    first = max(windows[0].first_step for windows in steady)
    last = min(windows[-1].last_step for windows in steady)
    return [
        [each for each in windows if each.first_step >= first and each.last_step <= last]
        for windows in steady
    ]


def _message(
    profiles: Sequence[Profile], chosen: Sequence[Sequence[Window]], offsets: Sequence[int]
) -> dict[str, Any]:
    windows = [each for of_rank in chosen for each in of_rank]
    times = reduce(StepTimes.with_later, (each.times for each in windows), StepTimes())
    return {
        "cpu_user_ns": sum(each.cpu_user_ns for each in windows),
        "cpu_system_ns": sum(each.cpu_system_ns for each in windows),
        "timed_steps": times.count,
        "step_total_ns": times.total_ns,
        "step_minimum_ns": times.minimum_ns,
        "step_maximum_ns": times.maximum_ns,
        "step_m2": times.m2,
        "metrics": [_rows(name, rows) for name, rows in _sums(profiles, chosen, offsets).items()],
    }


def _sums(
    profiles: Sequence[Profile], chosen: Sequence[Sequence[Window]], offsets: Sequence[int]
) -> Mapping[str, Sums]:
    """Return nodes, numbers of events and sums by metric, over the chosen windows of each rank."""
    found: dict[str, list[Sums]] = {}
    for profile, windows, offset in zip(profiles, chosen, offsets, strict=True):
        part = profile.within(windows)
        for name, rows in part.stored_metrics().items():
            is_summed = rows.descriptor.aggregation is Aggregation.SUM
            if name == STEP_TIME_NS.name or not (is_summed or name == CALL_DURATION_NS.name):
                continue
            total = rows.total
            if name == CALL_DURATION_NS.name:
                # As in the ranks' own sections: without the time of the calls themselves.
                total = total - part.exclusive(HOST_TIME_NS.name)[rows.node]
            of_rank = (rows.node.astype(np.int64) + offset, rows.count.astype(np.int64), total)
            found.setdefault(name, []).append(of_rank)
    return {
        name: (
            np.concatenate([each[0] for each in rows]),
            np.concatenate([each[1] for each in rows]),
            np.concatenate([each[2] for each in rows]),
        )
        for name, rows in found.items()
    }


def _rows(name: str, sums: Sums) -> dict[str, Any]:
    node, count, total = sums
    data = (np.diff(node, prepend=0).astype("<u4"), count.astype("<i8"), total.astype("<i8"))
    return {"name": name} | {
        field: wire.column(kind, values.tobytes())
        for (field, kind), values in zip(schema.WINDOW_ROW_TYPES.items(), data, strict=True)
    }
