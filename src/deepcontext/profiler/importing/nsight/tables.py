"""The tables of an export, and their rows as events.

Tables exist only where something was recorded; columns differ by version, rows are in no order. A thread is
``globalTid % 2^24`` of the process ``globalTid / 2^24 % 2^24``; work of devices is joined with its call by
correlation id and process.
Source: docs.nvidia.com/nsight-systems, "SQLite Schema Reference".
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, Final

import msgspec

from deepcontext.profiler.importing.kineto.columns import STEP_MARK
from deepcontext.profiler.importing.kineto.event_stream import Args, Event
from deepcontext.profiler.importing.reader import PROCESS_STEP

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator

WHOLE_GRAPH: Final = "CUDA graph (kernels not traced)"
CALLS: Final = "CUPTI_ACTIVITY_KIND_RUNTIME"
RANGES: Final = "NVTX_EVENTS"
KERNELS: Final = "CUPTI_ACTIVITY_KIND_KERNEL"
GRAPHS: Final = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
SAMPLES: Final = "COMPOSITE_EVENTS"
_COPIES, _SETS = "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET"
_WITH_TIMES: Final = (CALLS, RANGES, KERNELS, GRAPHS, SAMPLES, _COPIES, _SETS)
_READ: Final = frozenset({
    *_WITH_TIMES,
    *("StringIds", "ThreadNames", "META_DATA_EXPORT", "TARGET_INFO_GPU", "SAMPLING_CALLCHAINS"),
    "TARGET_INFO_SESSION_START_TIME",
})
THREAD: Final = "globalTid / 16777216 % 16777216, globalTid % 16777216"
_PROCESS_OF_CALL: Final = "globalTid / 16777216 % 16777216"
_DIRECTIONS: Final = (
    "",
    "HtoD",
    "DtoH",
    "HtoA",
    "AtoH",
    "AtoA",
    "AtoD",
    "DtoA",
    "DtoD",
    "HtoH",
    "PtoP",
)
_VERSION: Final = re.compile(r"_v\d+$")
# Ranges of torch.autograd.profiler.emit_nvtx, whose numbers differ from call to call: of operators, and of
# record_function, as FSDP and optimizers use it ("FSDP::pre_forward (shared)", "Optimizer.step#SGD.step").
_OPERATOR: Final = re.compile(r", (?:stashed seq|seq|op_id|sizes|input_op_ids) = ")
_OF_SCOPE: Final = re.compile(r"[ (#]")
_SEQUENCE: Final = re.compile(r", seq = (\d+)")
_STASHED: Final = re.compile(r", stashed seq = (\d+)")
_STEP: Final = re.compile(
    r"(?:train(?:ing)?[ _])?(?:step|iter|iteration)[ _#:]*(\d+)", re.IGNORECASE
)


class Tables:
    """The tables of one opened export.

    Attributes:
        strings: texts by id.
        origin_ns: the first time of the file, from which times count.
    """

    def __init__(self, opened: sqlite3.Connection) -> None:
        self._opened = opened
        found = opened.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        self._columns = {
            name: {row[1] for row in opened.execute(f"PRAGMA table_info({name})")}
            for (name,) in found.fetchall()
            if name in _READ
        }
        texts = self.rows("StringIds", "id", "value")
        self.strings = {number: text for number, text in texts if isinstance(text, str)}
        firsts = [next(self.rows(table, "min(start)"))[0] for table in _WITH_TIMES if table in self]
        self.origin_ns = min((each for each in firsts if isinstance(each, int)), default=0)

    def __contains__(self, table: str) -> bool:
        """Return whether the file has a table."""
        return table in self._columns

    def rows(self, table: str, *columns: str, where: str = "1") -> Iterator[Any]:
        """Yield rows of a table; a column that the table does not have is None."""
        if table not in self:
            return iter(())
        known = self._columns[table]
        chosen = [
            "NULL" if column.isidentifier() and column not in known else column
            for column in columns
        ]
        # The names are constants of this folder.
        return self._opened.execute(f"SELECT {', '.join(chosen)} FROM {table} WHERE {where}")  # noqa: S608

    def events(self) -> Iterator[Event]:
        """Yield the events of the file."""
        yield from self._ranges()
        yield from self._calls()
        yield from self._kernels()
        for table, category in ((_COPIES, "gpu_memcpy"), (_SETS, "gpu_memset")):
            yield from self._moves(table, category)
        for begin, duration, *place in self._device_rows(GRAPHS):
            yield _on_device("kernel", WHOLE_GRAPH, begin, duration, _device(*place))

    def times(self) -> tuple[str, str]:
        """Return begin and duration in us, as SQL."""
        return f"(start - {self.origin_ns}) / 1e3", "(end - start) / 1e3"

    def _calls(self) -> Iterator[Event]:
        correlation = f"correlationId + {_PROCESS_OF_CALL} * {PROCESS_STEP}"
        rows = self.rows(CALLS, *self.times(), THREAD, correlation, "nameId")
        for begin, duration, process, thread, number, name in rows:
            text = _VERSION.sub("", self.strings.get(name, ""))
            args = Args(correlation=number)
            yield Event("X", "cuda_runtime", text, process, thread, begin, duration, None, args)

    def _ranges(self) -> Iterator[Event]:
        # Pushed and popped, or started and ended on one thread; others belong to no thread's stack.
        where = (
            "end IS NOT NULL AND (eventType IN (59, 70) OR "
            "eventType IN (60, 71) AND coalesce(endGlobalTid, globalTid) = globalTid)"
        )
        rows = self.rows(RANGES, *self.times(), THREAD, "text", "textId", where=where)
        for begin, duration, process, thread, text, number in rows:
            category, name, args = _range(text or self.strings.get(number, ""))
            yield Event("X", category, name, process, thread, begin, duration, None, args)

    def _kernels(self) -> Iterator[Event]:
        shape = (
            *("gridX * gridY * gridZ", "blockX * blockY * blockZ"),
            *("registersPerThread", "staticSharedMemory + dynamicSharedMemory"),
        )
        rows = self._device_rows(KERNELS, "demangledName", "shortName", *shape)
        for begin, duration, *rest in rows:
            *place, full, short, blocks, threads, registers, shared = rest
            args = _device(*place)
            args.grid, args.block = _raw(blocks), _raw(threads)
            args.registers, args.shared_memory = registers, shared
            name = self.strings.get(full) or self.strings.get(short, "")
            yield _on_device("kernel", name, begin, duration, args)

    def _moves(self, table: str, category: str) -> Iterator[Event]:
        for begin, duration, *rest in self._device_rows(table, "copyKind", "bytes"):
            *place, kind, moved = rest
            args = _device(*place)
            args.bytes = moved
            known = isinstance(kind, int) and 0 < kind < len(_DIRECTIONS)
            name = f"Memcpy {_DIRECTIONS[kind]}" if known else "Memcpy"
            name = "Memset" if table == _SETS else name
            yield _on_device(category, name, begin, duration, args)

    def _device_rows(self, table: str, *columns: str) -> Iterator[Any]:
        if table not in self:
            return iter(())
        # Exports before 2021 do not say the process.
        has_process = "globalPid" in self._columns[table]
        process = "globalPid / 16777216 % 16777216" if has_process else "0"
        correlation = f"correlationId + {process} * {PROCESS_STEP}"
        return self.rows(table, *self.times(), correlation, "deviceId", "streamId", *columns)


def _device(correlation: int | None, device: int | None, stream: int | None) -> Args:
    return Args(correlation=correlation, device=device, stream=stream)


def _on_device(
    category: str, name: str, begin: float | None, duration: float | None, args: Args
) -> Event:
    # Without an end there is no duration, which is not one of zero.
    known = math.nan if duration is None else duration
    return Event("X", category, name, 0, 0, begin, known, None, args)


def _raw(value: object) -> msgspec.Raw:
    return msgspec.Raw(str(value).encode())


def _range(text: str) -> tuple[str, str, Args | None]:
    """Return category, name and arguments of a range: an operator of PyTorch, a step, or a scope."""
    found = _OPERATOR.search(text)
    if found:
        stashed, sequence = _STASHED.search(text), _SEQUENCE.search(text)
        number = stashed or sequence
        name = text[: found.start()]
        if _OF_SCOPE.search(name.partition(": ")[0]):
            return "user_annotation", name, None
        args = Args(
            sequence=int(number[1][:18]) if number else None, forward_thread=1 if stashed else None
        )
        return "cpu_op", name, args
    step = _STEP.fullmatch(text)
    return "user_annotation", f"{STEP_MARK}{step[1]}" if step else text, None
