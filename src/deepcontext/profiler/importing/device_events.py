"""From events with times to a profile, for formats other than torch.profiler's.

The events are given in the form of torch.profiler's, so that one mechanism nests and joins them. Does not
know formats.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Final

from deepcontext.profiler.format.frame import MAIN_THREAD
from deepcontext.profiler.format.status import Status
from deepcontext.profiler.importing.kineto.columns import Kind
from deepcontext.profiler.importing.reader import Reading
from deepcontext.profiler.model.trust import CollectorReport

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from deepcontext.profiler.importing.kineto.backward import Links
    from deepcontext.profiler.importing.kineto.columns import Columns, Thread
    from deepcontext.profiler.importing.kineto.device import Work
    from deepcontext.profiler.importing.kineto.event_stream import Event
    from deepcontext.profiler.importing.kineto.nesting import Events

_BATCH: Final = 65_536
_TOLERATED_SHARE: Final = 0.001
_LATE_NS: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Said:
    """What is said of a file with events of hosts and devices.

    Attributes:
        producer: the tool that wrote the file, with its version.
        vendor: of the devices, in lower case; "" for unknown.
        columns: the events.
        lacks: what the file may not have and why that matters, by the name of the part.
        notes: what a reader must know before trusting the figures.
        details: further facts by name.
        of_parts: facts about parts that the file has, by the name of the part.
    """

    producer: str
    vendor: str
    columns: Columns
    lacks: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    details: Mapping[str, str] = field(default_factory=dict)
    of_parts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def reading(
        self, events: Events, links: Links, work: Work, *, steps_kept: int, steps_too_large: int
    ) -> Reading:
        """Return what was in the file."""
        of = {kind: int((events.kind == kind).sum()) for kind in Kind}
        columns, unmatched = self.columns, work.counts.unmatched
        matched = work.counts.matched + work.counts.by_operator
        backward = {
            "backward_links_found": links.counts.linked,
            "backward_links_missed": links.counts.unlinked,
        }
        device = {"records": len(work), "matched": matched, "unmatched": unmatched}
        parts = {
            "python": {"functions": of[Kind.PYTHON]},
            "torch": {"operators": of[Kind.OPERATOR], **backward},
            "memory": {"events": len(columns.memory)},
            self.vendor or "gpu": device | {"graph_launched": work.counts.graph},
        }
        return Reading(
            self.producer,
            {
                "events_read": columns.counts["read"],
                "operators": of[Kind.OPERATOR],
                "scopes": of[Kind.SCOPE],
                "device_records": len(work),
                "launches_matched": matched,
                "launches_unmatched": unmatched,
                **backward,
                "events_unknown": columns.counts["unknown"],
                "events_without_times": columns.counts["without_times"],
            },
            tuple(self._parts(parts)),
            (*self._notes(events, work), *self.notes),
            {
                **self.details,
                "unknown": ", ".join(f"{what} ({n:,})" for what, n in columns.unknown.items()),
                "profiler_overhead_ns": str(columns.overhead_ns or ""),
                "steps_too_large_for_the_time_line": str(steps_too_large or ""),
                "steps_kept": str(steps_kept),
            },
        )

    def _parts(self, parts: Mapping[str, Mapping[str, int]]) -> Iterator[CollectorReport]:
        """Yield the parts that the file has, whose first figure is above 0, and those that it lacks."""
        has = {name: figures for name, figures in parts.items() if next(iter(figures.values()))}
        for name, figures in has.items():
            details = {key: f"{figure:,}" for key, figure in figures.items() if figure}
            yield CollectorReport(
                name, Status.RAN, details=details | dict(self.of_parts.get(name, {}))
            )
        for name, why in self.lacks.items():
            if name not in has:
                yield CollectorReport(name, Status.OFF, why)

    def _notes(self, events: Events, work: Work) -> Iterator[str]:
        count = work.counts.unmatched
        if count > _TOLERATED_SHARE * len(work):
            early = f" ({work.early:,} were launched before the trace began)" if work.early else ""
            yield (
                f"{count:,} of {len(work):,} kernels, copies and memsets have no launch in the file{early}: "
                "they are shown as 'GPU work of unknown origin'"
            )
        if len(work) and len(events) and work.end.max() > events.end.max() + _LATE_NS:
            late = int(work.end.max() - events.end.max())
            yield (
                f"the devices worked for {late / 1e6:,.1f} ms after the file's last event of the host: the "
                "elapsed time is the host's"
            )
        if without := self.columns.counts["without_times"]:
            yield f"{without:,} events have no usable times and are left out"


def in_batches(events: Iterable[Event]) -> Iterator[list[Event]]:
    """Yield lists of events, none of them large."""
    rest = iter(events)
    while batch := list(islice(rest, _BATCH)):
        yield batch


def main_thread(columns: Columns) -> Thread | None:
    """Return the thread whose number is the process's, of several the one with the most events."""
    own = [each for each in columns.threads if each[0] == each[1]]
    return max(
        own or columns.threads, key=lambda each: len(columns.threads[each].times), default=None
    )


def thread_names(columns: Columns, known: Mapping[Thread, str]) -> dict[Thread, str]:
    """Return names of the threads, in brackets, as torch.profiler writes them.

    Of several processes, threads are those of "process 2", since numbers of processes differ from run to run.
    """
    processes = sorted({str(process) for process, _ in columns.threads})
    names = {}
    for process, thread in columns.threads:
        own = MAIN_THREAD if process == thread else known.get((process, thread)) or "thread"
        several = f"process {processes.index(str(process)) + 1}: " if len(processes) > 1 else ""
        names[process, thread] = f"({several}{own})"
    return names
