"""The events of a trace as columns: what is kept of each event, 30 bytes or so, until the tree is built.

Reads events once, in the order of the file. Does not nest or join them. Times are ns since the trace's first
event.
"""

from __future__ import annotations

import enum
import math
from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.profiler.importing.kineto.event_stream import Args, Event

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    Thread = tuple[int | str, int | str]

NONE: Final = -1
_NS_PER_US: Final = 1000
# Beyond this, times are no times: 146 years.
MOST_NS: Final = 2**62
_NO_ARGS: Final = Args()
STEP_MARK: Final = "ProfilerStep#"


class Kind(enum.IntEnum):
    """What an event on the host is."""

    OPERATOR = 0
    SCOPE = 1
    PYTHON = 2
    CALL = 3  # of the run time or the driver of a GPU


_HOST: Final = {
    "cpu_op": Kind.OPERATOR,
    "operator": Kind.OPERATOR,  # before 2022
    "user_annotation": Kind.SCOPE,
    "python_function": Kind.PYTHON,
    "cuda_runtime": Kind.CALL,
    "cuda_driver": Kind.CALL,
    "runtime": Kind.CALL,
    "privateuse1_runtime": Kind.CALL,
    "privateuse1_driver": Kind.CALL,
    "xpu_runtime": Kind.CALL,
    "mtia_runtime": Kind.CALL,
}
_DEVICE: Final = {
    "kernel": 0,
    "gpu_memcpy": 1,
    "gpu_memset": 2,
    "memcpy": 1,
    "memset": 2,
}
# Repeat what is known otherwise, or have no duration of the program's own.
_SKIPPED: Final = frozenset({
    "gpu_user_annotation",
    "trace",
    "ac2g",
    "async_cpu_to_gpu",
    "async_gpu",
})


@dataclass(slots=True)
class ThreadColumns:
    """Events of one thread, in the order of the file.

    Attributes:
        times: begin and duration of each event in us, one after the other, as the file has them.
        codes: three numbers of each event: twice the number of its kind and name (an index into
            `Columns.names`), plus 1 if the file has the thread of an operator's forward operator; of an
            operator its sequence number, of a call its correlation id; of an operator its external id. `NONE`
            where there is none.
    """

    times: array[float] = field(default_factory=lambda: array("d"))
    codes: array[int] = field(default_factory=lambda: array("q"))


class Rows:
    """Rows of whole numbers, in the order of the file.

    Args:
        names: names of the columns, joined by spaces.
    """

    def __init__(self, names: str) -> None:
        self._names = names.split()
        self._values = array("q")

    def __len__(self) -> int:
        return len(self._values) // len(self._names)

    def add(self, *row: int) -> None:
        """Add a row."""
        self._values.extend(row)

    def __getitem__(self, name: str) -> npt.NDArray[np.int64]:
        """Return a column, shape (rows,)."""
        rows = np.asarray(self._values, np.int64).reshape(-1, len(self._names))
        return rows[:, self._names.index(name)].copy()


@dataclass(slots=True)
class Step:
    """One step that the profiler marked."""

    number: int
    begin: int
    end: int


class Columns:
    """Everything that is kept of a trace.

    Attributes:
        origin_ns: the time from which times count, ns of the trace's own clock.
        names: kind and name by number.
        kernels: kind (0 kernel, 1 copy, 2 memset) and name by number.
        shapes: blocks, threads of a block, registers and shared memory of launches by number.
        threads: columns by thread.
        thread_names: names by thread.
        device: what ran on devices.
        memory: allocations and frees; `size` is negative for a free.
        forward, backward: ends of flows from forward to backward.
        steps: marks of the profiler.
        span: begin and duration of the trace in ns, where the file has it.
        counts: events by what became of them.
        unknown: categories that are not known, with numbers of events.
    """

    def __init__(self) -> None:
        self.origin_ns: int | None = None
        self.names: list[tuple[Kind, str]] = []
        self.kernels: list[tuple[int, str]] = []
        self.shapes: list[tuple[int, int, int, int]] = []
        self.threads: dict[Thread, ThreadColumns] = {}
        self.thread_names: dict[Thread, str] = {}
        self.process_names: dict[int | str, str] = {}
        self.device = Rows("begin duration name correlation external device stream bytes shape")
        self.memory = Rows("at size address thread device allocated reserved")
        self.forward = Rows("id thread at")
        self.backward = Rows("id thread at")
        self.steps: list[Step] = []
        self.span: tuple[int, int] | None = None
        self.overhead_ns = 0
        self.counts = {"read": 0, "unknown": 0, "without_times": 0, "skipped": 0}
        self.unknown: dict[str, int] = {}
        self._what: dict[tuple[Kind, object], int] = {}
        self._kernel: dict[tuple[int, str], int] = {}
        self._shape: dict[tuple[object, ...], int] = {}
        self._thread: dict[Thread, int] = {}

    def read(self, batches: Iterable[list[Event]]) -> None:
        """Read all events."""
        for batch in batches:
            self.counts["read"] += len(batch)
            for event in batch:
                kind = _HOST.get(event.cat or "")
                if kind is not None and event.ph == "X":
                    self._on_host(event, kind)
                elif event.ph == "X":
                    self._other_span(event, (event.cat or "").lower())
                elif event.ph in _FLOW_ENDS:
                    self._flow(event)
                elif event.ph in _INSTANTS:
                    self._instant(event)
                elif event.ph == "M":
                    self._metadata(event)
                else:
                    self._unknown(f"phase '{event.ph[:20]}'")

    def thread_number(self, thread: Thread) -> int:
        """Return the number of a thread."""
        return self._thread.setdefault(thread, len(self._thread))

    def _on_host(self, event: Event, kind: Kind) -> None:  # noqa: C901  the hot path
        key = (kind, event.name)
        what = self._what.get(key)
        if what is None:
            if kind is Kind.SCOPE and (event.name or "").startswith(STEP_MARK):
                self._step(event)
                return
            what = self._what[key] = len(self.names)
            self.names.append((kind, event.name or ""))
        thread = (event.pid, event.tid)
        columns = self.threads.get(thread)  # type: ignore[arg-type]
        if columns is None:
            columns = self._new_thread(event, thread)  # type: ignore[arg-type]
        try:
            columns.times.extend((event.ts, event.dur))  # type: ignore[arg-type]
        except TypeError:
            columns.times.extend(
                [math.nan] * (len(columns.codes) // 3 * 2 + 2 - len(columns.times))
            )
        link = external = NONE
        args = event.args
        code = what << 1
        if args is not None:
            if kind is Kind.OPERATOR:
                number, external = args.sequence, args.external  # type: ignore[assignment]
                link = number if type(number) is int else _whole(number)
                external = external if type(external) is int else _whole(external)
                if args.forward_thread and _whole(args.forward_thread) > 0:
                    code |= 1
            elif kind is Kind.CALL:
                link = _whole(args.correlation)
        try:
            columns.codes.extend((code, link, external))
        except OverflowError:
            columns.codes.extend([code, NONE, NONE][len(columns.codes) % 3 :])

    def _new_thread(self, event: Event, thread: Thread) -> ThreadColumns:
        if self.origin_ns is None:
            self._times(event)
        self.thread_number(thread)
        return self.threads.setdefault(thread, ThreadColumns())

    def _other_span(self, event: Event, category: str) -> None:
        times = self._times(event)
        if category == "trace":
            self.span = times
        elif category in _SKIPPED:
            self.counts["skipped"] += 1
        elif category == "overhead":
            self.overhead_ns += times[1] if times else 0
        elif category not in _DEVICE:
            self._unknown(f"category '{category[:40]}'")
        elif times is None:
            self.counts["without_times"] += 1
        else:
            self._on_device(event, _DEVICE[category], times)

    def _on_device(self, event: Event, kind: int, times: tuple[int, int]) -> None:
        args = event.args or _NO_ARGS
        key = (kind, event.name or "")
        name = self._kernel.get(key)
        if name is None:
            name = self._kernel[key] = len(self.kernels)
            self.kernels.append(key)
        self.device.add(
            *times,
            name,
            _whole(args.correlation),
            _whole(args.external),
            _whole(args.device if args.device is not None else event.pid),
            _whole(args.stream if args.stream is not None else event.tid),
            _whole(args.bytes),
            self._shape_of(args) if kind == 0 else NONE,
        )

    def _shape_of(self, args: Args) -> int:
        text = (bytes(args.grid), bytes(args.block), args.registers, args.shared_memory)
        number = self._shape.get(text)
        if number is None:
            shape = (
                _product(text[0]),
                _product(text[1]),
                _whole(args.registers),
                _whole(args.shared_memory),
            )
            number = NONE
            if shape[0] > 0 and shape[1] > 0:
                number = len(self.shapes)
                self.shapes.append(shape)
            if len(self._shape) < _MOST_SHAPES:
                self._shape[text] = number
        return number

    def _step(self, event: Event) -> None:
        number, times = (event.name or "").removeprefix(STEP_MARK), self._times(event)
        if times is None:
            self.counts["without_times"] += 1
            return
        known = int(number) if number.isdecimal() else NONE
        self.steps.append(Step(known, times[0], sum(times)))

    def _flow(self, event: Event) -> None:
        times = self._times(event) if event.cat == "fwdbwd" else None
        if times is None:
            self.counts["skipped"] += 1
            return
        flows = self.forward if event.ph == "s" else self.backward
        thread = self.thread_number((event.pid, event.tid))  # type: ignore[arg-type]
        flows.add(_whole(event.id), thread, times[0])

    def _instant(self, event: Event) -> None:
        args = event.args
        if args is None or args.allocated is None or (times := self._times(event)) is None:
            self.counts["skipped"] += 1
            return
        is_host = _whole(args.device_type) == 0
        self.memory.add(
            times[0],
            _whole(args.allocated),
            max(_whole(args.address), 0),
            self.thread_number((event.pid, event.tid)),  # type: ignore[arg-type]
            NONE if is_host else max(_whole(args.device_id), 0),
            _whole(args.total_allocated),
            _whole(args.total_reserved),
        )

    def _metadata(self, event: Event) -> None:
        self.counts["skipped"] += 1
        text = "" if event.args is None or event.args.name is None else str(event.args.name)
        if event.name == "thread_name":
            self.thread_names[event.pid, event.tid] = text  # type: ignore[index]
        elif event.name == "process_name":
            self.process_names[event.pid] = text  # type: ignore[index]

    def _times(self, event: Event) -> tuple[int, int] | None:
        """Return begin and duration in ns, None where they are no times."""
        try:
            begin = round(event.ts * _NS_PER_US)  # type: ignore[operator]
            duration = round((event.dur or 0) * _NS_PER_US)
        except (TypeError, ValueError, OverflowError):
            return None
        if self.origin_ns is None:
            self.origin_ns = begin
        begin -= self.origin_ns
        return (begin, duration) if 0 <= duration < MOST_NS and abs(begin) < MOST_NS else None

    def _unknown(self, what: str) -> None:
        self.counts["unknown"] += 1
        if what in self.unknown or len(self.unknown) < _MOST_UNKNOWN:
            self.unknown[what] = self.unknown.get(what, 0) + 1


_FLOW_ENDS: Final = frozenset("sft")
_INSTANTS: Final = frozenset("iI")
_MOST_UNKNOWN: Final = 20
_MOST_SHAPES: Final = 1 << 16


def _whole(value: float | str | None) -> int:
    """Return a whole number; `NONE` for anything else."""
    if type(value) is int:
        return value if abs(value) < MOST_NS else NONE
    if value is None:
        return NONE
    try:
        number = int(value)
    except (ValueError, OverflowError):
        return NONE
    return number if abs(number) < MOST_NS else NONE


def _product(text: bytes) -> int:
    """Return the product of a list of numbers, `NONE` for anything else."""
    try:
        product = (
            math.prod(int(part) for part in text.strip(b"[] \n").split(b",")) if text else NONE
        )
    except ValueError:
        return NONE
    return product if abs(product) < MOST_NS else NONE
