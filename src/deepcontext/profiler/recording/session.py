"""The life of one profile: start, snapshots, stop.

Knows no framework: the caller passes the collectors. Imports only the standard library and the
native core into the program under test. Invariant: a readable profile exists however the process
ends after the first snapshot.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import threading
from typing import TYPE_CHECKING, Final, TypeVar

from deepcontext import _native
from deepcontext.errors import DeepContextError, SessionError
from deepcontext.profiler.format.metric import KNOWN_METRICS
from deepcontext.profiler.format.status import Outcome, Status
from deepcontext.profiler.recording import clock, operations, windows
from deepcontext.profiler.recording.capture import Capture
from deepcontext.profiler.recording.collector import (
    ImportWaiter,
    RankSource,
    StepObserver,
    TimeCharger,
)
from deepcontext.profiler.recording.descriptors import with_descriptors
from deepcontext.profiler.recording.rank import current_rank
from deepcontext.profiler.recording.scope import Scope
from deepcontext.profiler.recording.source_text import SourceText, command_of, program_of
from deepcontext.profiler.recording.usage import ProcessUsage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from deepcontext.profiler.format.metric import MetricDescriptor
    from deepcontext.profiler.recording.collector import Collector
    from deepcontext.profiler.recording.launch.own_children import OwnChildren
    from deepcontext.profiler.recording.options import SessionOptions
    from deepcontext.profiler.recording.rank import Rank
    from deepcontext.profiler.recording.session_file import SessionFile

Answer = TypeVar("Answer")
_CHILDREN: Final = "children"
_FIRST_SNAPSHOT_S = 0.3
# A snapshot may take this share of one processor between two snapshots, or they come less often.
_SNAPSHOT_BUDGET = 0.02


class Session:
    """One profile in the making. Made by `SessionManager.start`."""

    def __init__(
        self,
        file: SessionFile | None,
        options: SessionOptions,
        collectors: Sequence[Collector],
        launched_as: str | None,
    ) -> None:
        self._file = file
        self._options = options
        self._collectors = collectors
        self._launched_as = launched_as
        self._outcomes: dict[str, Outcome] = {}
        self._started: list[Collector] = []
        self._step_observers: list[StepObserver] = []
        self._usage = ProcessUsage()
        self._cwd = _working_directory()
        self._source_text: SourceText | None = None
        if options.source_text:
            script = launched_as or ""
            self._source_text = SourceText(self._cwd, command_of(script), program_of(script))
        self.parent_pid: Callable[[], int] = functools.partial(int, os.getppid())
        self._forked_children = 0
        self.recorded_children = 0  # upper bound of the forked children that have profiles
        self.own_children: OwnChildren | None = None  # set where children are recorded
        self._begun_ns = 0  # of clock.monotonic_ns()
        self._failed_snapshots = 0
        self._last_failure = ""
        self._faults: dict[str, str] = {}  # of collectors: the first of each
        self._interrupt: BaseException | None = None
        self._is_over = False

    @property
    def path(self) -> Path | None:
        """The file that the profile is written to; None for a profile in memory."""
        return self._file.path if self._file else None

    @property
    def file_notes(self) -> tuple[str, ...]:
        """Why the profile is not in the requested file."""
        return self._file.notes if self._file else ()

    @property
    def _writes_snapshots(self) -> bool:
        file = self._file
        return file is not None and file.takes_snapshots and self._options.snapshot_interval > 0

    # -- life

    def _begin(self) -> None:
        try:
            _native.begin(self._options.node_limit, self._options.timeline)
            for collector in self._collectors:
                self._start_collector(collector)
            self._usage = ProcessUsage(self._charged_from_ns())
            self._begun_ns = clock.monotonic_ns()
            _native.start_windows(windows.metric_names(self._metrics()))
            if self._writes_snapshots:
                interval = self._options.snapshot_interval
                self._write("snapshot")
                first = min(_FIRST_SNAPSHOT_S, interval)
                _native.start_watcher(self._on_watcher, first, first)
            self._raise_interrupt()
        except BaseException:
            self._stop_recording()
            raise

    def _start_collector(self, collector: Collector) -> None:
        try:
            collector.start(self._options)
        except DeepContextError as refusal:
            self._outcomes[collector.name] = Outcome(Status.UNAVAILABLE, str(refusal))
        except BaseException as error:  # noqa: BLE001  a fault costs one collector, never the program
            self._note_fault(collector.name, "start", error)
            fault = self._faults[collector.name]
            self._outcomes[collector.name] = Outcome(Status.UNAVAILABLE, fault)
            self._ask(collector.name, "stop", collector.stop, None)
        else:
            self._started.append(collector)
            if isinstance(collector, StepObserver):
                self._step_observers.append(collector)

    def _charged_from_ns(self) -> int:
        """Return since when time is charged: threads that wait for a processor get it a moment later."""
        chargers = [each for each in self._started if isinstance(each, TimeCharger)]
        return max((self._ask(c.name, "start", c.charged_from_ns, 0) for c in chargers), default=0)

    def _end(self, reason: str) -> Capture:
        """Stop everything, whatever a collector raises, and write the profile."""
        if self._is_over:
            raise SessionError("the session was stopped already")
        try:
            _native.stop_watcher()
            end_ns = 0
            for collector in self._started:
                if isinstance(collector, TimeCharger):
                    end_ns = self._ask(collector.name, "stop", collector.charge_no_more, 0)
            self._usage.freeze(end_ns or clock.monotonic_ns())
            self._settle()
        except BaseException as error:  # noqa: BLE001  raised when nothing is left behind
            self._interrupt = error
        self._stop_recording()
        capture = self._save(reason)
        self._raise_interrupt()
        return capture

    def _stop_recording(self) -> None:
        """Leave nothing behind in the program."""
        self._is_over = True
        _native.stop_watcher()
        _native.stop_windows()
        for collector in reversed(self._started):
            self._ask(collector.name, "stop", collector.stop, None)
        _native.end()

    def _warn_of_notes(self) -> None:
        if self._launched_as is None:  # the launcher prints these notes itself
            for note in self.file_notes:
                _warn(note)

    # -- collectors that fail

    def _ask(self, name: str, what: str, call: Callable[[], Answer], otherwise: Answer) -> Answer:
        """Ask a collector; a fault costs what it would have answered, and the report says so."""
        try:
            return call()
        except BaseException as error:  # noqa: BLE001  the others must be stopped, and the profile written
            self._note_fault(name, what, error)
            return otherwise

    def _note_fault(self, name: str, what: str, error: BaseException) -> None:
        text = f"a fault of the profiler in '{what}': {type(error).__name__}: {error}"
        self._faults.setdefault(name, text)
        # Only where the process may have no more threads: elsewhere no handler runs here.
        if not isinstance(error, Exception):
            self._interrupt = error

    def _raise_interrupt(self) -> None:
        interrupt, self._interrupt = self._interrupt, None
        if interrupt is not None:
            raise interrupt

    def _settle(self) -> None:
        for collector in self._started:
            self._ask(collector.name, "settle", collector.settle, None)
        if self.own_children is not None:
            self._ask(_CHILDREN, "look", self.own_children.look, None)

    def _outcome(self, collector: Collector) -> Outcome:
        if collector.name in self._outcomes:
            return self._outcomes[collector.name]
        unknown = Outcome(Status.UNAVAILABLE)
        found = self._ask(collector.name, "outcome", collector.outcome, unknown)
        fault = self._faults.get(collector.name)
        if fault is None:
            return found
        status = Status.UNAVAILABLE if found is unknown else Status.DEGRADED
        reason = "; ".join(filter(None, (fault, found.reason)))
        return dataclasses.replace(found, status=status, reason=reason)

    def _discard(self) -> None:
        """Stop, and remove the file, because no line of the program ran."""
        self._stop_recording()
        if self._file is not None:
            self._file.remove()

    # -- marks

    def step(self, *, keep: bool = False) -> None:
        """Mark the end of one step of the program's main loop.

        A step takes the time between two marks; the time before the first mark is set-up.

        Args:
            keep: keep the time line of the step that ends, whatever its duration; of the steps with
                this mark, the last 8 are kept.
        """
        _native.mark_step(keep)
        for observer in self._step_observers:
            observer.on_step()

    def scope(self, name: str) -> Scope:
        """Put what runs inside under a named frame: ``with session.scope("evaluate"): ...``."""
        return Scope(name)

    # -- snapshots

    def snapshot(self) -> None:
        """Write what was recorded so far to the session's file.

        Raises:
            SessionError: when the session has no file.
            UserError: when the file cannot be written any more.
            EnvironmentProblem: when the machine failed to write.
        """
        if self.path is None:
            raise SessionError("this session has no file to write a snapshot to; give it a path")
        operations.run_exclusively(lambda: self._write("snapshot"))

    def _write(self, reason: str) -> None:
        if self._is_over:
            return
        for collector in self._started:
            if isinstance(collector, ImportWaiter):
                self._ask(collector.name, "notice_import", collector.notice_import, None)
        self._settle()
        self._save(reason)

    def _save(self, reason: str) -> Capture:
        """Write what was recorded so far to the session's file, if it has one."""
        if self._file is None:
            return self._capture(reason)
        file = self._file
        with_descriptors(file.make_way)  # before the capture, whose notes tell about a changed name
        capture = self._capture(reason)
        with_descriptors(lambda: file.write(capture.encode()))
        return capture

    def _on_watcher(self) -> None:
        """Write a snapshot; called by the native watcher thread, so nothing may be raised.

        The profile of a killed program lacks the time since the last snapshot. Early in a run the
        interval is the age of the run, so at most half of the run is lost.
        """
        begun_ns = clock.thread_cpu_ns()
        try:
            _native.try_operation(lambda: self._write("snapshot"))
        except Exception as error:  # noqa: BLE001  a fault of the profiler is a note, not a traceback
            is_explained = isinstance(error, OSError | DeepContextError)
            self._failed_snapshots += 1
            self._last_failure = str(error) if is_explained else f"{type(error).__name__}: {error}"
        cost = (clock.thread_cpu_ns() - begun_ns) / 1e9
        age = (clock.monotonic_ns() - self._begun_ns) / 1e9
        wanted = min(self._options.snapshot_interval, age)
        _native.set_watcher_interval(max(wanted, cost / _SNAPSHOT_BUDGET))

    def _capture(self, reason: str) -> Capture:
        children = self.own_children
        return Capture(
            reading=_native.read_tree(_thread_names()),
            counters=_native.counters(),
            sections=self._sections(reason),  # before the outcomes, which tell about its faults
            outcomes={c.name: self._outcome(c) for c in self._collectors},
            phase_rules=[rule for c in self._collectors for rule in c.phase_rules],
            usage=self._usage.read(),
            exit_reason=reason,
            steps=_native.steps(),
            forked_children=self._forked_children,
            unrecorded_children=max(self._forked_children - self.recorded_children, 0),
            child_counters=children.counters() if children else {},
            notes=self._all_notes(),
            metrics=self._metrics(),
            options=self._options.recorded(),
            script=self._launched_as or "",
            cwd=self._cwd,
            rank=self.rank(),
            parent_pid=self.parent_pid(),
            source_text=self._source_text,
        )

    def _metrics(self) -> tuple[MetricDescriptor, ...]:
        return (*KNOWN_METRICS, *(each for c in self._collectors for each in c.metrics))

    def _sections(self, reason: str) -> dict[str, bytes]:
        sections: dict[str, bytes] = {}
        for collector in self._started:
            nothing: Mapping[str, bytes] = {}
            sections |= self._ask(collector.name, "sections", collector.sections, nothing)
        if self.own_children is not None:
            sections |= self.own_children.sections(is_last=reason != "snapshot")
        return sections

    def rank(self) -> Rank | None:
        """Return what a framework says, because children of a rank inherit the launcher's variables."""
        sources = (c for c in self._started if isinstance(c, RankSource))
        said = (self._ask(source.name, "rank", source.rank, None) for source in sources)
        return next((rank for rank in said if rank is not None), None) or current_rank()

    def _all_notes(self) -> tuple[str, ...]:
        notes = list(self.file_notes)
        if self.own_children is not None:
            notes += self.own_children.notes()
        if _CHILDREN in self._faults:
            notes.append(f"child processes may be missing: {self._faults[_CHILDREN]}")
        if _native.are_windows_refused():
            notes.append(
                "the run is not cut into windows: the process may have no more threads (ulimit -u, or a "
                "container's limit)"
            )
        if self._failed_snapshots:
            notes.append(
                f"{self._failed_snapshots} snapshots could not be written, the last one because of: "
                f"{self._last_failure}"
            )
        if self._writes_snapshots and _native.watcher_threads_refused():
            notes.append(
                "no snapshot could be written for a time: the process may have no more threads "
                "(ulimit -u, or a container's limit)"
            )
        return tuple(notes)


def _working_directory() -> str:
    try:
        return os.getcwd()  # noqa: PTH109  pathlib's is a wrapper
    except OSError:  # it was deleted
        return ""


def _warn(text: str) -> None:
    # Not `warnings`: a program may turn them into errors, and the profile is safe.
    import logging  # noqa: PLC0415  hardly ever needed

    logging.getLogger("deepcontext").warning("%s", text)


def _thread_names() -> list[tuple[int, str]]:
    """Return (identifier, name) of the threads Python knows."""
    threads = ((thread.ident, thread.name) for thread in threading.enumerate())
    return [(ident, name) for ident, name in threads if ident is not None]
