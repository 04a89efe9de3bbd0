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

    Ints = npt.NDArray[np.int64]


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


@dataclass(frozen=True, slots=True)
class WindowRows:
    """Values of one metric, arrays of shape (events,).

    Attributes:
        node: node of each event.
        value: its value.
        window: number of its window; the number of windows for an event in none.
    """

    node: Ints
    value: Ints
    window: npt.NDArray[np.int16]

    def of(self, number: int) -> tuple[Ints, Ints, Ints]:
        """Return nodes, ascending, with the number and the sum of their events in a window."""
        chosen = self.window == number
        nodes, place = np.unique(self.node[chosen], return_inverse=True)
        count = np.bincount(place, minlength=len(nodes))
        total = np.bincount(place, weights=self.value[chosen], minlength=len(nodes))
        return nodes, count, total.astype(np.int64)


def windows_section(
    windows: Sequence[WindowFacts], metrics: Mapping[str, WindowRows], node_count: int
) -> bytes:
    """Return the payload of the section."""
    return wire.encode(
        "WindowTable",
        {
            "windows": [_message(number, each, metrics) for number, each in enumerate(windows)],
            "estimated": [],
            "node_count": node_count,
        },
    )


def _message(number: int, window: WindowFacts, metrics: Mapping[str, WindowRows]) -> dict[str, Any]:
    times = np.array(window.times, np.int64)
    rows = {name: each.of(number) for name, each in metrics.items()}
    if CALL_DURATION_NS.name in rows and HOST_TIME_NS.name in rows:
        rows[CALL_DURATION_NS.name] = _less(rows[CALL_DURATION_NS.name], rows[HOST_TIME_NS.name])
    return {
        "first_step": window.first_step,
        "end_step": window.end_step,
        "begin_ns": window.begin_ns,
        "end_ns": window.end_ns,
        "timed_steps": len(times),
        "step_total_ns": int(times.sum()),
        "step_minimum_ns": int(times.min(initial=np.iinfo(np.int64).max)) if len(times) else 0,
        "step_maximum_ns": int(times.max(initial=0)),
        "step_m2": float(((times - times.mean()) ** 2).sum()) if len(times) else 0.0,
        "metrics": [_metric(name, *each) for name, each in rows.items() if len(each[0])],
    }


def _less(
    durations: tuple[Ints, Ints, Ints], own: tuple[Ints, Ints, Ints]
) -> tuple[Ints, Ints, Ints]:
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
