"""From the events of a trace to the tree, its metrics and its sections."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.errors import ProfileDataError
from deepcontext.profiler.format.metric import CALL_DURATION_NS, HOST_TIME_NS, TRACED_TIME_NS
from deepcontext.profiler.importing.kineto.backward import Links
from deepcontext.profiler.importing.kineto.columns import Columns, Kind
from deepcontext.profiler.importing.kineto.device import Work, device_section, measure_calls
from deepcontext.profiler.importing.kineto.event_stream import EventStream
from deepcontext.profiler.importing.kineto.measures import (
    Covered,
    exclusive,
    host_times,
    parts,
)
from deepcontext.profiler.importing.kineto.memory import Memory
from deepcontext.profiler.importing.kineto.nesting import Nesting, sorted_events
from deepcontext.profiler.importing.kineto.said import run_of, said_of, vendor_of
from deepcontext.profiler.importing.kineto.steps import Steps
from deepcontext.profiler.importing.kineto.time_line import keep_steps, lanes_of
from deepcontext.profiler.importing.reader import Contents
from deepcontext.profiler.importing.tree_builder import TreeBuilder

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from deepcontext.profiler.importing.device_events import Said
    from deepcontext.profiler.importing.kineto.event_stream import Event
    from deepcontext.profiler.importing.kineto.measures import HostTimes
    from deepcontext.profiler.importing.kineto.nesting import Events, Nested
    from deepcontext.profiler.importing.source_file import SourceFile

    Ints = npt.NDArray[np.int64]

_FOREVER: Final = 2**62
# Each needs memory and time of its own, whatever it did.
_MOST_THREADS: Final = 100_000


def contents_of(file: SourceFile) -> Contents:
    """Read a trace.

    Raises:
        ProfileDataError: the file is damaged, or has no event of PyTorch or of a GPU.
    """
    stream = EventStream(file.chunks(), file.path)
    columns = Columns()
    columns.read(_of_few_threads(stream, columns))
    columns.counts["unknown"] += stream.odd
    if not columns.threads and not len(columns.device):
        raise ProfileDataError(
            f"cannot read '{file.path}': {columns.counts['read']:,} events, and none of an operator, a "
            "function, a kernel or a copy; name a trace of torch.profiler"
        )
    return contents_from(columns, stream.facts, said_of(columns, stream.facts))


def _of_few_threads(stream: EventStream, columns: Columns) -> Iterator[list[Event]]:
    for batch in stream:
        yield batch
        if len(columns.threads) > _MOST_THREADS:
            raise stream.wrong(
                f"events of more than {_MOST_THREADS:,} threads, and no program has as many"
            )


def contents_from(columns: Columns, facts: dict[str, object], said: Said) -> Contents:
    """Make a profile from events, whatever file they were read from.

    Args:
        columns: the events; they are emptied.
        facts: what stands beside them, by the names that torch.profiler uses.
        said: what is said of the file.
    """
    builder = TreeBuilder()
    events = sorted_events(columns)
    links = Links(columns, events)
    nested = Nesting(columns, events, links, builder).run()
    begin_ns, wall_ns = _span(columns, events)
    steps = Steps(columns.steps, begin_ns)
    builder.cut_into(steps.windows())
    work = Work(columns, events, nested, builder)
    events.link = events.external = links.forward = np.zeros(0, np.int64)  # no longer needed
    times = host_times(events, nested)
    _measure(events, nested, times, builder, begin_ns)
    measure_calls(work, columns, events, nested, builder, begin_ns)
    work.measure(begin_ns)
    devices = work.idle(begin_ns)
    steps.add_to(builder)
    vendor = vendor_of(facts, columns)
    names = [builder.name_of(node) for node in nested.thread_node]
    lanes = lanes_of(events, nested, work, names, vendor or "device", begin_ns)
    kept, too_large = keep_steps(steps, lanes, builder, wall_ns)
    memory = Memory(columns, events, nested, begin_ns)
    sections = steps.section() | memory.measure(builder, steps)
    if devices:
        sections |= device_section(vendor or "unknown", facts, devices)
    return Contents(
        builder,
        run_of(columns, facts, begin_ns, wall_ns, len(steps)),
        said.reading(events, links, work, steps_kept=kept, steps_too_large=too_large),
        sections,
    )


def _span(columns: Columns, events: Events) -> tuple[int, int]:
    """Return begin and elapsed time of the trace, in ns, on the clock of the events."""
    begins, ends = [], []
    if columns.span is not None:
        begins.append(columns.span[0])
        ends.append(sum(columns.span))
    if len(events):
        begins.append(int(events.begin.min()))
        ends.append(int(events.end.max()))
    if not begins:  # of devices alone
        begin = columns.device["begin"]
        begins.append(int(begin.min()))
        ends.append(int((begin + columns.device["duration"]).max()))
    return min(begins), max(ends) - min(begins)


def _measure(
    events: Events, nested: Nested, times: HostTimes, builder: TreeBuilder, begin_ns: int
) -> None:
    """Add the times of operators, scopes and Python functions."""
    for part in parts(len(events)):
        kind, node, end = events.kind[part], nested.node[part], events.end[part] - begin_ns
        own, in_scope = times.own[part], times.in_scope[part]
        is_operator, is_scope = kind == Kind.OPERATOR, kind == Kind.SCOPE
        called = is_operator | is_scope
        duration = events.end[part] - events.begin[part]
        builder.add(CALL_DURATION_NS, node[called], duration[called], end[called])
        inside = is_operator | ((kind == Kind.PYTHON) & ~times.outside[part] & (own > 0))
        builder.add(HOST_TIME_NS, node[inside], own[inside], end[inside])
        builder.add(HOST_TIME_NS, node[is_scope], in_scope[is_scope], end[is_scope])
    _measure_outside(events, nested, times, builder, begin_ns)


def _measure_outside(
    events: Events, nested: Nested, times: HostTimes, builder: TreeBuilder, begin_ns: int
) -> None:
    """Add the time outside operators; functions that are open for long are divided at the windows."""
    is_call = events.kind == Kind.CALL
    waits = _waits_for_backward(events)
    elsewhere = _engine(events, nested, begin_ns)
    after = -abs(begin_ns)  # before all events
    for edge in [*builder.window_ends(), _FOREVER - abs(begin_ns)]:
        inside = np.minimum(nested.end, edge + begin_ns)
        inside -= np.maximum(events.begin, after + begin_ns)
        inside[is_call | (inside < 0)] = 0
        own = exclusive(inside, nested)
        # The operators of a backward pass on another thread are counted at their forward operators.
        first = np.maximum(events.begin[waits] - begin_ns, after)
        own[waits] -= np.minimum(own[waits], elsewhere.within(first, first + inside[waits]))
        for part in parts(len(events)):
            has = part.start + np.flatnonzero(
                times.outside[part] & ~is_call[part] & (own[part] > 0)
            )
            builder.add(TRACED_TIME_NS, nested.node[has], own[has], np.full(len(has), edge))
        after = edge
    # Calls outside of everything: the thread's own time.
    alone = np.flatnonzero(is_call & (nested.parent < 0))
    above = builder.parents()[nested.node[alone]]
    end = nested.end[alone]
    builder.add(TRACED_TIME_NS, above, end - events.begin[alone], end - begin_ns)


def _waits_for_backward(events: Events) -> Ints:
    """Return the calls that run a backward pass."""
    of_call = np.array([each.runs_backward for each in events.places] or [False], bool)
    return np.flatnonzero(of_call[events.what]) if len(events) else np.zeros(0, np.int64)


def _engine(events: Events, nested: Nested, begin_ns: int) -> Covered:
    """Return when threads of the autograd engine other than the first thread ran something."""
    outermost = np.zeros(len(events), bool)
    for first, last in zip(events.first[1:-1].tolist(), events.first[2:].tolist(), strict=True):
        if events.is_backward[first:last].any():
            outermost[first:last] = nested.parent[first:last] < 0
    return Covered(events.begin[outermost] - begin_ns, events.end[outermost] - begin_ns)
