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


@dataclass(frozen=True, slots=True)
class SaidOfEvents:
    """What is said of a file with events of hosts and devices.

    Attributes:
        producer: the tool that wrote the file, with its version.
        vendor: of the devices, in lower case.
        columns: the events.
        lacks: what the file does not have and why that matters, by the name of the part.
        notes: what a reader must know before trusting the figures.
        details: further facts by name.
    """

    producer: str
    vendor: str
    columns: Columns
    lacks: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    details: Mapping[str, str] = field(default_factory=dict)

    def reading(
        self, events: Events, links: Links, work: Work, *, steps_kept: int, steps_too_large: int
    ) -> Reading:
        """Return what was in the file."""
        matched, unmatched = work.counts.matched, work.counts.unmatched
        counts = {
            "events_read": self.columns.counts["read"],
            "operators": int((events.kind == Kind.OPERATOR).sum()),
            "scopes": int((events.kind == Kind.SCOPE).sum()),
            "device_records": len(work),
            "launches_matched": matched,
            "launches_unmatched": unmatched,
            "backward_links_found": links.counts.linked,
            "events_without_times": self.columns.counts["without_times"],
        }
        lacking = [CollectorReport(name, Status.OFF, why) for name, why in self.lacks.items()]
        records = {
            "records": f"{len(work):,}",
            "matched": f"{matched:,}",
            "unmatched": f"{unmatched:,}",
        }
        device = CollectorReport(self.vendor, Status.RAN, details=records)
        details = dict(self.details) | {"steps_kept": str(steps_kept)}
        if steps_too_large:
            details["steps_too_large_for_the_time_line"] = str(steps_too_large)
        return Reading(
            self.producer,
            counts,
            (device, *lacking) if len(work) else tuple(lacking),
            (*self._notes(events, work), *self.notes),
            details,
        )

    def _notes(self, events: Events, work: Work) -> list[str]:
        notes, count = [], work.counts.unmatched
        has_calls = bool((events.kind == Kind.CALL).any())
        if has_calls and count > _TOLERATED_SHARE * len(work):
            notes.append(
                f"{count:,} of {len(work):,} kernels, copies and memsets have no launch in the file (the "
                "call was made before the recording or cut away): they are shown as "
                "'GPU work of unknown origin'"
            )
        if without := self.columns.counts["without_times"]:
            notes.append(f"{without:,} events have no usable times and are left out")
        return notes


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
