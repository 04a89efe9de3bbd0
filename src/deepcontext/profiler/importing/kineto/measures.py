"""Times of the host from nested events: exclusive times, durations, and overlaps with other intervals.

Computed over all events at once. Invariant: over the events of a thread without overlaps, exclusive times add
up to the time covered by its outermost events.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.profiler.importing.kineto.columns import NONE, Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from deepcontext.profiler.importing.kineto.nesting import Events, Nested

    Ints = npt.NDArray[np.int64]
    Mask = npt.NDArray[np.bool_]

_AT_ONCE: Final = 1 << 18


@dataclass(slots=True)
class HostTimes:
    """Times of the host, arrays of shape (events,).

    Attributes:
        own: time of each operator, scope and Python function without the events inside, ns.
        outside: whether an event is no operator and in none, bool.
        in_scope: time of each scope without operators and scopes inside, ns.
    """

    own: Ints
    outside: Mask
    in_scope: Ints


def host_times(events: Events, nested: Nested) -> HostTimes:
    """Return the times of the events."""
    duration = nested.end - events.begin
    is_operator = events.kind == Kind.OPERATOR
    outside = ~is_operator & (_nearest(nested.parent, is_operator) == NONE)
    measured = is_operator | (events.kind == Kind.SCOPE)
    around = _nearest(nested.parent, measured)
    around[~measured] = NONE
    in_scope = _without(duration, around)
    duration[events.kind == Kind.CALL] = 0
    return HostTimes(exclusive(duration, nested), outside, in_scope)


def exclusive(inclusive: Ints, nested: Nested) -> Ints:
    """Return values without those of the events directly inside; never negative, shape (events,)."""
    return _without(inclusive, nested.parent)


def _without(inclusive: Ints, parent: npt.NDArray[np.int32]) -> Ints:
    result = inclusive.copy()
    for part in parts(len(inclusive)):
        inside = part.start + np.flatnonzero(parent[part] != NONE)
        np.subtract.at(result, parent[inside], inclusive[inside])
    np.maximum(result, 0, out=result)
    return result


def parts(count: int) -> Iterator[slice]:
    """Yield parts of so many events: what is computed of all at once takes much memory."""
    for start in range(0, count, _AT_ONCE):
        yield slice(start, min(start + _AT_ONCE, count))


def _nearest(parent: npt.NDArray[np.int32], mask: Mask) -> npt.NDArray[np.int32]:
    """Return the nearest event around each that is in `mask`, `NONE` without one, shape (events,)."""
    # One slot past the end stands for "none"; index -1 reaches it. The event itself is no candidate.
    jump = np.append(np.where(mask, np.arange(len(parent), dtype=np.int32), parent), np.int32(NONE))
    while True:
        further = jump[jump]
        if np.array_equal(further, jump):
            found: npt.NDArray[np.int32] = further[np.append(parent, np.int32(NONE))][:-1]
            return found
        jump = further


class Covered:
    """Length of the union of intervals up to a time."""

    def __init__(self, begin: Ints, end: Ints) -> None:
        order = np.argsort(begin, kind="stable")
        begin, end = begin[order], np.maximum.accumulate(end[order]) if len(end) else end
        # An interval opens a gap where it begins after all before have ended.
        opens = np.concatenate(([True], begin[1:] > end[:-1])) if len(begin) else np.zeros(0, bool)
        self.begin = begin[opens]
        self.end = end[np.append(opens[1:], True)] if len(begin) else end
        self._before = np.concatenate(([0], np.cumsum(self.end - self.begin)))

    def up_to(self, times: Ints) -> Ints:
        """Return how much is covered before each time, in ns."""
        if not len(self.begin):
            return np.zeros(len(times), np.int64)
        place = np.searchsorted(self.begin, times, "right") - 1
        inside = np.minimum(times, self.end[place]) - self.begin[place]
        return np.where(place >= 0, self._before[place] + inside, 0)

    def within(self, begin: Ints, end: Ints) -> Ints:
        """Return how much of each interval is covered, in ns."""
        return self.up_to(end) - self.up_to(begin)

    @property
    def total(self) -> int:
        """Return the length of the union, in ns."""
        return int(self._before[-1])
