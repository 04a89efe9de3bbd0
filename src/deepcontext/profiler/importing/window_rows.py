"""The windows of a run, as the profile file holds them, made from events with times.

As `recording/windows.py`, which has them from the native core.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from deepcontext.profiler.format import schema, wire
from deepcontext.profiler.format.metric import CALL_DURATION_NS, HOST_TIME_NS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from deepcontext.profiler.importing.sums import Sums

    Ints = npt.NDArray[np.int64]
    Rows = tuple[Ints, Ints, Ints]


@dataclass(frozen=True, slots=True)
class WindowFacts:
    """One window.

    Attributes:
        first_step: steps that had ended when it began.
        end_step: steps that had ended when it ended.
        begin_ns: since the start of the first window.
        end_ns: when it ended.
        times: times of the steps that ended in it, in ns.
    """

    first_step: int
    end_step: int
    begin_ns: int
    end_ns: int
    times: tuple[int, ...] = ()


def windows_section(
    windows: Sequence[WindowFacts], metrics: Mapping[str, Sums], place: Ints
) -> bytes:
    """Return the payload of the section.

    Args:
        windows: the windows.
        metrics: sums by name of the metric.
        place: id of each node in the finished tree by the builder's ids, shape (nodes,).
    """
    messages = []
    for number, window in enumerate(windows):
        rows = {name: _rows(sums, number, place) for name, sums in metrics.items()}
        messages.append(_message(window, rows))
    table = {"windows": messages, "estimated": [], "node_count": len(place)}
    return wire.encode("WindowTable", table)


def _rows(sums: Sums, number: int, place: Ints) -> Rows:
    """Return nodes, ascending, with the number and the sum of their events in a window."""
    chosen = np.flatnonzero(sums.window == number)
    node = place[sums.node[chosen]]
    chosen, node = chosen[np.argsort(node)], np.sort(node)
    return node, sums.count[chosen], sums.total[chosen]


def _message(window: WindowFacts, rows: dict[str, Rows]) -> dict[str, Any]:
    times = np.array(window.times, np.int64)
    if CALL_DURATION_NS.name in rows and HOST_TIME_NS.name in rows:
        rows[CALL_DURATION_NS.name] = _less(rows[CALL_DURATION_NS.name], rows[HOST_TIME_NS.name])
    return {
        "first_step": window.first_step,
        "end_step": window.end_step,
        "begin_ns": window.begin_ns,
        "end_ns": window.end_ns,
        "timed_steps": len(times),
        "step_total_ns": int(times.sum()),
        "step_minimum_ns": min(window.times, default=0),
        "step_maximum_ns": max(window.times, default=0),
        "step_m2": float(((times - times.mean()) ** 2).sum()) if len(times) else 0.0,
        "metrics": [_metric(name, *each) for name, each in rows.items() if len(each[0])],
    }


def _less(durations: Rows, own: Rows) -> Rows:
    """Return durations without the time of the calls themselves, as the format has them."""
    nodes = np.union1d(durations[0], own[0])
    count, total = np.zeros(len(nodes), np.int64), np.zeros(len(nodes), np.int64)
    place = np.searchsorted(nodes, durations[0])
    count[place], total[place] = durations[1], durations[2]
    total[np.searchsorted(nodes, own[0])] -= own[2]
    return nodes, count, total


def _metric(name: str, node: Ints, count: Ints, total: Ints) -> dict[str, Any]:
    columns = {
        "node_step": np.diff(node, prepend=0).astype("<u4"),
        "count": count.astype("<i8"),
        "total": total.astype("<i8"),
    }
    return {"name": name} | {
        field: wire.column(kind, columns[field].tobytes())
        for field, kind in schema.WINDOW_ROW_TYPES.items()
    }
