"""Which event called which, by time, and the node of each: one pass over the events of each thread.

An event is below the innermost event of its thread that has not ended where it begins; events may overlap
without nesting. Invariant: the events of `Nested` are in the order (thread, begin, longer first), and an
event's parent stands before it.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from deepcontext.profiler.format.frame import MAIN_THREAD, Frame, FrameKind
from deepcontext.profiler.importing.kineto.columns import MOST_NS, NONE, Columns, Kind
from deepcontext.profiler.importing.kineto.frames import Place, phase_below, place_of
from deepcontext.profiler.importing.tree_builder import ROOT

if TYPE_CHECKING:
    import numpy.typing as npt

    from deepcontext.profiler.importing.kineto.backward import Links
    from deepcontext.profiler.importing.kineto.columns import Thread, ThreadColumns
    from deepcontext.profiler.importing.tree_builder import TreeBuilder

    Ints = npt.NDArray[np.int64]

# Where events begin and end together, the outer one is of the kind that calls the other.
_ORDER: Final = {Kind.PYTHON: 0, Kind.SCOPE: 1, Kind.OPERATOR: 2, Kind.CALL: 3}
# Of begin, end, what, link, external id, is_backward.
_TYPES: Final = (np.int64, np.int64, np.int32, np.int64, np.int64, np.bool_)
_AT_ONCE: Final = 65_536
_FOREVER: Final = 2**63 - 1


@dataclass(slots=True)
class Events:
    """Events of the host, by thread and begin; arrays of shape (events,), int64 if not said otherwise.

    Attributes:
        begin: ns.
        end: ns.
        what: number of kind and name, int32.
        kind: `Kind`, int8.
        link: sequence number of an operator, correlation id of a call; `NONE`.
        external: external id of an operator; `NONE`.
        is_backward: whether the file has the thread of the operator's forward operator, bool.
        first: index of each thread's first event, and the number of events, shape (threads + 1,).
        threads: the threads in this order.
        places: what the tree has for each kind and name.
    """

    begin: Ints
    end: Ints
    what: npt.NDArray[np.int32]
    kind: npt.NDArray[np.int8]
    link: Ints
    external: Ints
    is_backward: npt.NDArray[np.bool_]
    first: Ints
    threads: list[Thread]
    places: list[Place]

    def __len__(self) -> int:
        """Return the number of events."""
        return len(self.begin)


@dataclass(slots=True)
class Nested:
    """Where each event is, arrays of shape (events,).

    Attributes:
        parent: index of the event around it on its thread, `NONE` without one.
        node: its node; of an event without a frame of its own the node around it.
        end: end of each, at the latest that of the event around it, in ns: functions whose return the tracer
            missed seem to last until the trace ends.
        thread_node: node of each thread, shape (threads,).
    """

    parent: npt.NDArray[np.int32]
    node: npt.NDArray[np.int32]
    end: Ints
    thread_node: list[int]


def sorted_events(columns: Columns) -> Events:
    """Return the events by thread and begin; empties the columns of each thread as it goes."""
    kinds = np.array([kind for kind, _ in columns.names], np.int8)
    order_of = np.array([_ORDER[kind] for kind, _ in columns.names], np.int8)
    threads = _ordered_threads(columns)
    found: list[list[npt.NDArray[Any]]] = [[np.empty(0, each)] for each in _TYPES]
    first = [0]
    for thread in threads:
        part = _sorted(columns, columns.threads.pop(thread), order_of)
        first.append(first[-1] + len(part[0]))
        for column, values in zip(found, part, strict=True):
            column.append(values)
    # Column by column, so that one is in memory twice.
    joined: list[npt.NDArray[Any]] = []
    while found:
        joined.append(np.concatenate(found.pop(0)))
    begin, end, what, link, external, is_backward = joined
    return Events(
        begin,
        end,
        what,
        kinds[what] if len(what) else np.zeros(0, np.int8),
        link,
        external,
        is_backward,
        np.array(first, np.int64),
        threads,
        [place_of(*name) for name in columns.names],
    )


def _sorted(
    columns: Columns, thread: ThreadColumns, order_of: npt.NDArray[np.int8]
) -> tuple[npt.NDArray[np.generic], ...]:
    times = np.frombuffer(thread.times, np.float64).reshape(-1, 2)
    codes = np.frombuffer(thread.codes, np.int64).reshape(-1, 3)
    origin = columns.origin_ns or 0
    # Whole us of the year 2023 times 1,000 would not fit the 53 bits of a float: subtract first.
    begin = times[:, 0] - origin // 1000
    begin *= 1000
    begin -= origin % 1000
    duration = times[:, 1] * 1000
    with np.errstate(invalid="ignore"):
        usable = (np.abs(begin) < MOST_NS) & (duration >= 0) & (duration < MOST_NS)
    if not usable.all():
        columns.counts["without_times"] += int(len(usable) - usable.sum())
        begin, duration, codes = begin[usable], duration[usable], codes[usable]
    begins = np.rint(begin, out=begin).astype(np.int64)
    del begin
    durations = np.rint(duration, out=duration).astype(np.int64)
    del duration
    what = (codes[:, 0] >> 1).astype(np.int32)
    order = np.lexsort((order_of[what], -durations, begins))
    begins = begins[order]
    return (
        begins,
        begins + durations[order],
        what[order],
        codes[order, 1],
        codes[order, 2],
        (codes[order, 0] & 1).astype(bool),
    )


def _ordered_threads(columns: Columns) -> list[Thread]:
    """Return the threads, the main thread first, threads of the autograd engine last."""
    main = _main_thread(columns)

    def key(thread: Thread) -> tuple[bool, bool, int]:
        return thread != main, _is_engine(columns.threads[thread]), columns.thread_number(thread)

    return sorted(columns.threads, key=key)


def _main_thread(columns: Columns) -> Thread | None:
    """Return the thread whose number is the process's; else the one with the most events and no backward."""
    threads = columns.threads
    own = [each for each in threads if each[0] == each[1] and each[0] != 0]
    found = own or [each for each in threads if not _is_engine(threads[each])] or list(threads)
    return max(found, key=lambda each: len(threads[each].times), default=None)


def _is_engine(thread: ThreadColumns) -> bool:
    """Return whether a thread has operators with the thread of their forward operator."""
    return bool((np.frombuffer(thread.codes, np.int64)[::3] & 1).any())


@dataclass(frozen=True, slots=True)
class _Open:
    """The events that are open, the thread first: ends, indices, nodes, forward operators."""

    ends: list[int]
    indices: list[int]
    nodes: list[int]
    forwards: list[int]


class Nesting:
    """Finds parents and nodes, thread after thread."""

    def __init__(
        self, columns: Columns, events: Events, links: Links, builder: TreeBuilder
    ) -> None:
        self._columns = columns
        self._events = events
        self._links = links
        self._builder = builder
        self._frames = [
            NONE if each.frame is None else builder.frame(each.frame) for each in events.places
        ]
        self._forward = [
            each.frame is not None
            and each.frame.kind is FrameKind.PYTHON
            and each.frame.name == "forward"
            for each in events.places
        ]
        self._known: dict[int, int] = {}
        self.nested = Nested(
            np.full(len(events), NONE, np.int32),
            np.zeros(len(events), np.int32),
            events.end.copy(),
            [],
        )

    def run(self) -> Nested:
        """Return where each event is."""
        for number, thread in enumerate(self._events.threads):
            self.nested.thread_node.append(self._thread_node(number, thread))
            begin, end = int(self._events.first[number]), int(self._events.first[number + 1])
            self._thread(begin, end, self.nested.thread_node[-1])
        return self.nested

    def _thread_node(self, number: int, thread: Thread) -> int:
        name = MAIN_THREAD
        if number:
            given = self._columns.thread_names.get(thread, "")
            # "thread 639 (pt_autograd_0)": numbers differ from run to run.
            name = given.partition("(")[2].rpartition(")")[0] or "thread"
        return self._builder.child(ROOT, self._builder.frame(Frame(FrameKind.THREAD, name)))

    def _thread(self, first: int, last: int, thread_node: int) -> None:
        open_events = _Open([_FOREVER], [NONE], [thread_node], [NONE])
        for start in range(first, last, _AT_ONCE):
            part = slice(start, min(start + _AT_ONCE, last))
            self._part(part, open_events)
            self._links.note(self.nested, part)

    def _part(self, part: slice, open_events: _Open) -> None:  # noqa: C901  the hot loop
        events, nested, known = self._events, self.nested, self._known
        ends, indices, nodes, forwards = (
            open_events.ends,
            open_events.indices,
            open_events.nodes,
            open_events.forwards,
        )
        found: list[int] = []
        parents: list[int] = []
        for index, begin, end, what, kind, link, forward in zip(
            range(part.start, part.stop),
            events.begin[part].tolist(),
            events.end[part].tolist(),
            events.what[part].tolist(),
            events.kind[part].tolist(),
            events.link[part].tolist(),
            self._links.forward[part].tolist(),
            strict=True,
        ):
            while ends[-1] <= begin:
                ends.pop()
                indices.pop()
                nodes.pop()
                forwards.pop()
            above, is_moved = nodes[-1], False
            if forward == NONE:
                forward = forwards[-1]  # noqa: PLW2901  inside a backward operator
                if len(ends) == 1:
                    above = self._links.above(index, above)
            elif forward != forwards[-1]:
                is_moved = True
                is_here = forward >= part.start
                above = found[forward - part.start] if is_here else int(nested.node[forward])
            key = above << 34 | what << 2 | (kind == _OPERATOR and link >= 0) << 1 | is_moved
            node = known.get(key)
            if node is None:
                node = known[key] = self._node(above, what, key)
            found.append(node)
            parents.append(indices[-1])
            if end > ends[-1]:
                end = ends[-1]  # noqa: PLW2901
                nested.end[index] = end
            if kind != _CALL:
                ends.append(end)
                indices.append(index)
                nodes.append(node)
                forwards.append(forward)
        nested.node[part] = found
        nested.parent[part] = parents

    def _qualified(self, above: int, what: int) -> int:
        """Return the frame of a function `forward` with the class of the module that calls it.

        The trace has bare names; one file may define many such functions.
        """
        found = self._events.places[what].frame
        kind, name = self._builder.kind_of(above), self._builder.name_of(above)
        if found is None or kind is not FrameKind.MODULE:
            return self._frames[what]
        name = f"{name.partition(' ')[0]}.{found.name}"
        return self._builder.frame(dataclasses.replace(found, name=name))

    def _node(self, above: int, what: int, key: int) -> int:
        frame = self._frames[what]
        if frame == NONE:
            return above
        if self._forward[what]:
            frame = self._qualified(above, what)
        phase = phase_below(
            self._builder.phase_of(above),
            self._events.places[what].role,
            is_sequenced=bool(key & 2),
            is_backward=bool(key & 1),
        )
        return self._builder.child(above, frame, phase)


_OPERATOR: Final = int(Kind.OPERATOR)
_CALL: Final = int(Kind.CALL)
