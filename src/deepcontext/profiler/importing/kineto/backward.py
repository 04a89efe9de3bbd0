"""Which backward operator belongs to which forward operator, and where the rest of a backward pass goes.

By the flows ``fwdbwd`` where a file has them, else by sequence number: the forward operator is the latest one
with the number before the backward operator. What has no forward operator is below the call that runs the
backward pass.
"""

from __future__ import annotations

import bisect
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from deepcontext.profiler.importing.kineto.columns import NONE, Kind

if TYPE_CHECKING:
    import numpy.typing as npt

    from deepcontext.profiler.importing.kineto.columns import Columns, Rows
    from deepcontext.profiler.importing.kineto.nesting import Events, Nested

    Ints = npt.NDArray[np.int64]


@dataclass(slots=True)
class BackwardCounts:
    """What became of backward operators that name a forward thread or have a flow.

    Attributes:
        linked: number with a forward operator in the file.
        unlinked: number without.
    """

    linked: int = 0
    unlinked: int = 0


class Links:
    """Forward operator of each event, index or `NONE`, shape (events,).

    Attributes:
        forward: as above.
        counts: how many were found.
    """

    def __init__(self, columns: Columns, events: Events) -> None:
        self.counts = BackwardCounts()
        self.forward = np.full(len(events), NONE, np.int64)
        self._events = events
        self._of_call = np.array([each.runs_backward for each in events.places], bool)
        self._is_engine = [
            bool(events.is_backward[begin:end].any())
            for begin, end in zip(
                events.first[:-1].tolist(), events.first[1:].tolist(), strict=True
            )
        ]
        self._begins: list[int] = []
        self._ends: list[int] = []
        self._nodes: list[int] = []
        by_flow = self._by_flow(columns)
        self._by_number(by_flow)

    def above(self, index: int, thread_node: int) -> int:
        """Return the node above an outermost event: the call that waits for a backward pass, or a thread."""
        if not self._begins or index < self._events.first[1]:
            return thread_node
        thread = int(np.searchsorted(self._events.first, index, "right")) - 1
        begin = int(self._events.begin[index])
        place = bisect.bisect_right(self._begins, begin) - 1
        if place < 0 or self._ends[place] <= begin or not self._is_engine[thread]:
            return thread_node
        return self._nodes[place]

    def note(self, nested: Nested, part: slice) -> None:
        """Remember the calls that run backward passes among events whose nodes are known."""
        if not self._of_call.any():
            return
        chosen = part.start + np.flatnonzero(self._of_call[self._events.what[part]])
        self._begins += self._events.begin[chosen].tolist()
        self._ends += self._events.end[chosen].tolist()
        self._nodes += nested.node[chosen].tolist()

    def _by_flow(self, columns: Columns) -> Ints:
        """Return the forward operator that a flow names, by event, `NONE` without one."""
        found = np.full(len(self._events), NONE, np.int64)
        sources, targets = columns.forward, columns.backward
        source_event = self._operators_at(columns, sources)
        target_event = self._operators_at(columns, targets)
        of_id = dict(zip(sources["id"].tolist(), source_event.tolist(), strict=True))
        for number, event in zip(targets["id"].tolist(), target_event.tolist(), strict=True):
            forward = of_id.get(number, NONE)
            if NONE not in {event, forward}:
                found[event] = forward
        return found

    def _operators_at(self, columns: Columns, flows: Rows) -> Ints:
        """Return the innermost operator that begins where each end of a flow is, `NONE` without one."""
        events = self._events
        number = {columns.thread_number(thread): n for n, thread in enumerate(events.threads)}
        result = np.full(len(flows), NONE, np.int64)
        thread_of = np.array(
            [number.get(each, NONE) for each in flows["thread"].tolist()], np.int64
        )
        at = flows["at"]
        for thread in np.unique(thread_of[thread_of != NONE]).tolist():
            first, last = int(events.first[thread]), int(events.first[thread + 1])
            operators = first + np.flatnonzero(events.kind[first:last] == Kind.OPERATOR)
            mine = np.flatnonzero(thread_of == thread)
            # Ends of flows stand a little inside their operator in newer files.
            place = np.searchsorted(events.begin[operators], at[mine], "right") - 1
            inside = (place >= 0) & (events.end[operators[place]] >= at[mine])
            result[mine] = np.where(inside, operators[place], NONE)
        return result

    def _by_number(self, by_flow: Ints) -> None:
        events = self._events
        numbered = np.flatnonzero((events.kind == Kind.OPERATOR) & (events.link >= 0))
        numbered = numbered[np.lexsort((events.begin[numbered], events.link[numbered]))]
        is_backward = events.is_backward[numbered]
        place = np.where(is_backward, NONE, np.arange(len(numbered)))
        # The latest forward operator so far, if it has the same number.
        latest = np.maximum.accumulate(place) if len(place) else place
        has = latest != NONE
        same = np.zeros(len(numbered), bool)
        same[has] = events.link[numbered[has]] == events.link[numbered[latest[has]]]
        chosen = is_backward & same
        self.forward[numbered[chosen]] = numbered[latest[chosen]]
        # Flows say it where sequence numbers say nothing.
        self.forward = np.where(self.forward == NONE, by_flow, self.forward)
        # Threads are nested in order: a forward operator on a later thread has no node yet.
        self.forward[self.forward >= np.arange(len(events))] = NONE
        backward = np.flatnonzero(events.is_backward)
        linked = self.forward[backward] != NONE
        self.counts.linked = int(linked.sum())
        self.counts.unlinked = len(backward) - self.counts.linked
