"""The windows of a run: consecutive parts, cut at steps, each with the sums of every node in it.

Set-up ends with the first step; warm-up is told from the steady state by the time of steps; in other windows
another model runs (`other_models.py`); the end is what follows the last cut. Does not decide where a run is
cut (`native/core/windows.h`). Invariant: the sums of all windows are those of the whole run.
"""

from __future__ import annotations

import enum
import itertools
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from deepcontext.profiler.format import schema
from deepcontext.profiler.format.metric import CALL_DURATION_NS, HOST_TIME_NS, STEP_TIME_NS
from deepcontext.profiler.format.node_sections import WINDOWS
from deepcontext.profiler.model.node_table import NodeTable
from deepcontext.profiler.model.other_models import models, other_models
from deepcontext.profiler.model.store.column import ColumnError, decode_column
from deepcontext.profiler.model.tree import NO_NODE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]

# A window whose mean step time is above that of the slowest window of the later half by more than this
# share is warm-up.
_WITHIN: Final = 1.1
# Windows, and models.
_FEWEST: Final = 2
_TYPE_NUMBERS: Final = {
    name: schema.COLUMN_TYPES[kind] for name, kind in schema.WINDOW_ROW_TYPES.items()
}


class WindowKind(enum.StrEnum):
    """What the program does in a window."""

    SETUP = "setup"
    WARMUP = "warmup"
    STEADY = "steady"
    OTHER = "other"
    END = "end"


@dataclass(frozen=True, slots=True)
class StepTimes:
    """Times of the steps that ended in a window.

    Attributes:
        count: steps whose time is known: not the first one of a run.
        total_ns: sum of their times.
        minimum_ns: the shortest; 0 where unknown, as in the end.
        maximum_ns: the longest; 0 where unknown, as in the end.
        m2: sum of squared distances from their mean; 0 where unknown, as in the end.
    """

    count: int = 0
    total_ns: int = 0
    minimum_ns: int = 0
    maximum_ns: int = 0
    m2: float = 0.0

    @property
    def mean_ns(self) -> float:
        """Mean time of a step, 0 without steps."""
        return self.total_ns / self.count if self.count else 0.0

    def with_later(self, later: StepTimes) -> StepTimes:
        """Return the times of both (Chan et al.)."""
        if not self.count or not later.count:
            return later if later.count else self
        count = self.count + later.count
        distance = later.mean_ns - self.mean_ns
        return StepTimes(
            count,
            self.total_ns + later.total_ns,
            min(self.minimum_ns, later.minimum_ns),
            max(self.maximum_ns, later.maximum_ns),
            self.m2 + later.m2 + distance**2 * self.count * later.count / count,
        )


@dataclass(frozen=True, slots=True)
class Window:
    """One part of a run.

    Attributes:
        number: from 0, in order of time.
        kind: what the program does in it.
        first_step: number of the first step that ended in it, from 1.
        steps: number of steps that ended in it.
        begin_ns: when it began, since the session's start.
        end_ns: when it ended.
        cpu_user_ns: processor time of the process in user mode.
        cpu_system_ns: processor time of the process in the kernel.
        times: times of these steps.
        model: node of the outermost module or program that takes most time in it, for `WindowKind.OTHER`.
    """

    number: int
    kind: WindowKind
    first_step: int
    steps: int
    begin_ns: int
    end_ns: int
    cpu_user_ns: int = 0
    cpu_system_ns: int = 0
    times: StepTimes = field(default_factory=StepTimes)
    model: int = NO_NODE

    @property
    def last_step(self) -> int:
        """Number of the last step that ended in it; one less than `first_step` where none did."""
        return self.first_step + self.steps - 1

    @property
    def wall_ns(self) -> int:
        """Elapsed time of the window."""
        return self.end_ns - self.begin_ns


def of_steps(windows: Iterable[Window], first: int, last: int) -> list[Window]:
    """Return the windows that have one of these steps, counted from 1."""
    return [each for each in windows if each.first_step <= last and each.last_step >= first]


class WindowTable(NodeTable):
    """The windows that a profile's file holds; none without steps."""

    section = WINDOWS
    message = "WindowTable"

    @property
    def estimated(self) -> frozenset[str]:
        """Metrics whose rows are estimates for the whole run, so that no window has rows of them."""
        return frozenset(self._message.estimated)

    def windows(self, warmup: int | None = None) -> tuple[Window, ...]:
        """Return the windows, the last one being what follows the last cut.

        Args:
            warmup: number of steps before the steady state; None for the rule by the time of steps.
        """
        found = [self._window(number, each) for number, each in enumerate(self._message.windows)]
        if not found:
            return ()
        others = self._profile.once("other windows", lambda: self._others(found))
        of_main = [each for each in found if each.number not in others]
        kinds = dict(zip((each.number for each in of_main), _kinds(of_main, warmup), strict=True))
        named = [
            replace(each, kind=kinds[each.number])
            if each.number in kinds
            else replace(each, kind=WindowKind.OTHER, model=others[each.number])
            for each in found
        ]
        return (*named, self._end(found))

    def _others(self, found: Sequence[Window]) -> dict[int, int]:
        """Return the windows after set-up in which another model runs, and its node."""
        after, nodes = found[1:], np.flatnonzero(models(self._profile))
        if len(after) < _FEWEST or len(nodes) < _FEWEST:
            return {}
        ends = self._profile.tree.subtree_end[nodes]
        calls, times = np.zeros((2, len(after), len(nodes)), np.int64)
        for row, window in enumerate(after):
            for sums, name in ((calls, CALL_DURATION_NS.name), (times, HOST_TIME_NS.name)):
                for node, counts, totals in self._rows(window.number, name):
                    column = np.searchsorted(nodes, node, "right") - 1
                    inside = (column >= 0) & (node < ends[column])
                    added = counts if sums is calls else totals
                    np.add.at(sums[row], column[inside], added[inside])
        steps, wall_ns = [each.steps for each in after], [each.wall_ns for each in after]
        rows = other_models(steps, wall_ns, calls, times)
        return {after[row].number: int(nodes[column]) for row, column in rows.items()}

    def _window(self, number: int, message: Any) -> Window:
        times = StepTimes(
            message.timed_steps,
            message.step_total_ns,
            message.step_minimum_ns,
            message.step_maximum_ns,
            message.step_m2,
        )
        return Window(
            number,
            WindowKind.STEADY,
            message.first_step + 1,
            message.end_step - message.first_step,
            message.begin_ns,
            message.end_ns,
            message.cpu_user_ns,
            message.cpu_system_ns,
            times,
        )

    def _end(self, before: Sequence[Window]) -> Window:
        last, run = before[-1], self._profile.run
        rows = self._profile.metrics.get(STEP_TIME_NS.name)
        counted = 0 if rows is None else int(rows.count.sum())
        total_ns = 0 if rows is None else int(rows.total.sum())
        left = StepTimes(
            max(counted - sum(each.times.count for each in before), 0),
            max(total_ns - sum(each.times.total_ns for each in before), 0),
        )
        return Window(
            len(before),
            WindowKind.END,
            last.last_step + 1,
            left.count,
            last.end_ns,
            max(run.wall_ns, last.end_ns),
            max(run.cpu_user_ns - sum(each.cpu_user_ns for each in before), 0),
            max(run.cpu_system_ns - sum(each.cpu_system_ns for each in before), 0),
            left if left.count else StepTimes(),
        )

    def sums(self, metric: str, numbers: Sequence[int]) -> tuple[Ints, Ints]:
        """Return how many events of a metric each node has in some windows, and their sum.

        Args:
            metric: name of a metric of which windows have rows.
            numbers: numbers of the windows; that of the end is allowed.

        Returns:
            Two arrays of shape (nodes,), int64; no value is negative.

        Raises:
            ProfileDataError: rows are damaged.
        """
        size, end = self._size, len(self._message.windows)
        has_end = end in numbers
        added = set(range(end)) - set(numbers) if has_end else set(numbers)
        count, total = np.zeros(size, np.int64), np.zeros(size, np.int64)
        for number in added:
            for node, counts, totals in self._rows(number, metric):
                count[node] += counts
                total[node] += totals
            # Durations of calls are stored without the time of the call itself.
            own = HOST_TIME_NS.name if metric == CALL_DURATION_NS.name else ""
            for node, _, totals in self._rows(number, own):
                total[node] += totals
        if has_end:
            rows = self._profile.metrics[metric]
            count, total = -count, -total
            count[rows.node] += rows.count.astype(np.int64)
            total[rows.node] += rows.total
        return np.maximum(count, 0), np.maximum(total, 0)

    def metrics(self, number: int) -> dict[str, tuple[Ints, Ints, Ints]]:
        """Return the rows of a window as they are stored: nodes, numbers of events and sums, by metric.

        Durations of calls are without the time of the call itself.

        Raises:
            ProfileDataError: rows are damaged.
        """
        names = [each.name for each in self._message.windows[number].metrics]
        return {name: rows for name in names for rows in self._rows(number, name)}

    def _rows(self, number: int, metric: str) -> Iterator[tuple[Ints, Ints, Ints]]:
        for message in self._message.windows[number].metrics:
            if message.name == metric:
                columns = self._columns(number, message)
                node = np.cumsum(columns["node_step"], dtype=np.int64)
                if len(node) and not (columns["node_step"][1:].all() and node[-1] < self._size):
                    raise self._damage(f"window {number}, '{metric}': nodes must ascend")
                yield node, columns["count"], columns["total"]

    def _columns(self, number: int, message: Any) -> Mapping[str, npt.NDArray[Any]]:
        columns = {name: getattr(message, name) for name in _TYPE_NUMBERS}
        counts = {column.count for column in columns.values()}
        types = {name: column.type for name, column in columns.items()}
        where = f"window {number}, '{message.name}'"
        if len(counts) != 1 or max(counts) > self._size or types != _TYPE_NUMBERS:
            raise self._damage(f"{where}: wrong types or numbers of rows")
        try:
            return {name: decode_column(name, column) for name, column in columns.items()}
        except ColumnError as error:
            raise self._damage(f"{where}: {error}") from error


def _kinds(windows: Sequence[Window], warmup: int | None) -> list[WindowKind]:
    """Return what the program does in each window before the end.

    The program is warm from the first window on whose mean step time is within the range of the windows in
    the later half of the steps. A long window and a short one count the same: a compilation is over, or not.
    """
    if warmup is None:
        after = [window for window in windows[1:] if window.times.count]
        half = (after[0].first_step + after[-1].last_step) / 2 if after else 0
        later = [each.times.mean_ns for each in after if each.last_step >= half]
        slowest = max(later, default=0) * _WITHIN
        slow = itertools.takewhile(lambda each: each.times.mean_ns > slowest, windows[1:])
        warm_from = 1 + len(list(slow))
    else:
        warm_from = sum(window.first_step <= warmup for window in windows)
    warming = max(warm_from, 1) - 1
    steady = len(windows) - 1 - warming
    return [WindowKind.SETUP] + [WindowKind.WARMUP] * warming + [WindowKind.STEADY] * steady
