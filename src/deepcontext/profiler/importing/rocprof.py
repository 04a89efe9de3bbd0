"""Reads output of rocprofv3: ``*_results.json``, and the table of kernels ``*_kernel_trace.csv``.

A kernel or copy is joined with the HIP call that has its correlation id; recordings of kernels alone have no
calls. Grids are given in threads. Invariant: names of machines and folders of the recorded run are not read.
Source: rocm.docs.amd.com, rocprofiler-sdk, "Using rocprofv3".
"""

from __future__ import annotations

import csv
import io
import math
from typing import TYPE_CHECKING, Any, Final

from deepcontext.errors import ProfileDataError
from deepcontext.profiler.importing.reader import PROCESS_STEP
from deepcontext.profiler.importing.whole_file import content_of, json_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from deepcontext.profiler.importing.kineto.event_stream import Event
    from deepcontext.profiler.importing.reader import Contents
    from deepcontext.profiler.importing.source_file import SourceFile

_JSON: Final = b'"rocprofiler-sdk-tool"'
_CSV: Final = (b'"Kind","Agent_Id"', b"Kind,Agent_Id")
_CALLS: Final = ("hip_api", "rccl_api", "hsa_api")
_GPU: Final = 2  # an agent's type
_COPIES: Final = {
    "HOST_TO_HOST": "HtoH",
    "HOST_TO_DEVICE": "HtoD",
    "DEVICE_TO_HOST": "DtoH",
    "DEVICE_TO_DEVICE": "DtoD",
}
_WITHOUT_CALLS: Final = (
    "the file has no calls of HIP (record with --runtime-trace): kernels have no call paths"
)
_WITHOUT_RANGES: Final = "the file has no roctx ranges (record with --marker-trace)"
_NAMED: Final = ("formatted_kernel_name", "demangled_kernel_name", "kernel_name")


class RocprofReader:
    """Reads output of rocprofv3."""

    name = "output of rocprofv3"

    def recognises(self, head: bytes) -> bool:
        """Return whether the first bytes are those of the JSON file or of the table of kernels."""
        return (_JSON in head and head.lstrip()[:1] == b"{") or head.startswith(_CSV)

    def read(self, file: SourceFile) -> Contents:
        """Read a file.

        Raises:
            ProfileDataError: the file is damaged, or has no kernels, copies or calls.
        """
        if file.head.startswith(_CSV):
            rows = csv.DictReader(io.StringIO(content_of(file).decode("utf-8", "replace")))
            return _contents(file, _of_table(rows), {})
        parts = json_of(file, dict[str, Any]).get("rocprofiler-sdk-tool")
        tools = [_Tool(number, part) for number, part in enumerate(parts or ())]
        events = (event for tool in tools for event in tool.events())
        return _contents(file, events, tools[0].facts() if tools else {})


def _contents(file: SourceFile, events: Iterable[Event], facts: dict[str, object]) -> Contents:
    # Imported here, so that other commands start without the decoder.
    from deepcontext.profiler.importing.device_events import (  # noqa: PLC0415
        Said,
        in_batches,
        thread_names,
    )
    from deepcontext.profiler.importing.kineto.columns import Columns, Kind  # noqa: PLC0415
    from deepcontext.profiler.importing.kineto.contents import contents_from  # noqa: PLC0415

    columns = Columns()
    columns.read(in_batches(events))
    if not columns.threads and not len(columns.device):
        raise ProfileDataError(
            f"cannot read '{file.path}': rocprofv3 recorded no kernels, copies or calls in this file; record "
            "with --kernel-trace or --sys-trace"
        )
    columns.thread_names |= thread_names(columns, {})
    kinds = {kind for kind, _ in columns.names}
    lacks = {"cpu sampling": "rocprofv3 does not sample the CPU"}
    if Kind.CALL not in kinds:
        lacks["hip calls"] = _WITHOUT_CALLS
    if Kind.SCOPE not in kinds:
        lacks["roctx"] = _WITHOUT_RANGES
    said = Said("rocprofv3", "amd", columns, lacks)
    return contents_from(
        columns, {"interface": "rocprofv3", "rocprofiler_version": ""} | facts, said
    )


class _Tool:
    """What one process recorded."""

    def __init__(self, number: int, content: dict[str, Any]) -> None:
        self._first_id = number * PROCESS_STEP
        self._records: dict[str, Any] = content.get("buffer_records") or {}
        self._strings: dict[str, Any] = content.get("strings") or {}
        self._process = (content.get("metadata") or {}).get("pid", 0)
        self._symbols = {
            each["kernel_id"]: next((each[key] for key in _NAMED if each.get(key)), "")
            for each in content.get("kernel_symbols") or ()
        }
        gpus = [each for each in content.get("agents") or () if each.get("type") == _GPU]
        self._gpus = {each["id"]["handle"]: (n, each) for n, each in enumerate(gpus)}

    def facts(self) -> dict[str, object]:
        """Return what torch.profiler would write beside the events."""
        return {
            "deviceProperties": [
                {
                    "id": number,
                    "name": gpu.get("product_name") or gpu.get("name", ""),
                    "totalGlobalMem": max(
                        (b["size_in_bytes"] for b in gpu.get("mem_banks") or ()), default=0
                    ),
                    "numSms": gpu.get("cu_count", 0),
                }
                for number, gpu in self._gpus.values()
            ]
        }

    def events(self) -> Iterator[Event]:
        """Yield ranges, calls, kernels and copies."""
        texts = {each["key"]: each["value"] for each in self._strings.get("marker_api") or ()}
        for record in self._records.get("marker_api") or ():
            text = texts.get(record["correlation_id"]["internal"])
            # Ranges of a process, and marks, belong to no thread's stack.
            if text and any(part in self._operation(record) for part in ("Push", "ThreadRange")):
                yield self._on_host("user_annotation", str(text), record)
        for kind in _CALLS:
            for record in self._records.get(kind) or ():
                yield self._on_host("cuda_runtime", self._operation(record), record)
        for record in self._records.get("kernel_dispatch") or ():
            yield self._kernel(record)
        for record in self._records.get("memory_copy") or ():
            yield self._copy(record)

    def _operation(self, record: dict[str, Any]) -> str:
        kinds = self._strings["buffer_records"]
        return str(kinds[record["kind"]]["operations"][record["operation"]])

    def _on_host(self, category: str, name: str, record: dict[str, Any]) -> Event:
        args = {"correlation": self._correlation(record)}
        return _event(category, name, record, (self._process, record["thread_id"]), args)

    def _correlation(self, record: dict[str, Any]) -> int:
        return int(record["correlation_id"]["internal"]) + self._first_id

    def _device(self, handle: int) -> int:
        return self._gpus[handle][0] if handle in self._gpus else 0

    def _kernel(self, record: dict[str, Any]) -> Event:
        info = record["dispatch_info"]
        threads = math.prod(info["workgroup_size"].values())
        grid = math.prod(info["grid_size"].values())
        args = {
            "correlation": self._correlation(record),
            "device": self._device(info["agent_id"]["handle"]),
            # Older versions do not know the stream of HIP.
            "stream": record.get("stream_id", info["queue_id"])["handle"],
            "grid": _text(grid // max(threads, 1)),
            "block": _text(threads),
            "shared_memory": info.get("group_segment_size"),
        }
        name = self._symbols.get(info["kernel_id"], "")
        return _event("kernel", name, record, (0, 0), args)

    def _copy(self, record: dict[str, Any]) -> Event:
        direction = self._operation(record).removeprefix("MEMORY_COPY_")
        name = f"Memcpy {_COPIES.get(direction, '')}".strip()
        ends = (record["dst_agent_id"]["handle"], record["src_agent_id"]["handle"])
        args = {
            "correlation": self._correlation(record),
            "device": next((self._device(end) for end in ends if end in self._gpus), 0),
            "stream": (record.get("stream_id") or {"handle": 0})["handle"],
            "bytes": record.get("bytes"),
        }
        return _event("gpu_memcpy", name, record, (0, 0), args)


def _event(
    category: str, name: str, record: dict[str, Any], thread: tuple[int, int], args: dict[str, Any]
) -> Event:
    from deepcontext.profiler.importing.kineto.event_stream import Args, Event  # noqa: PLC0415

    begin, end = record["start_timestamp"], record["end_timestamp"]
    return Event("X", category, name, *thread, begin / 1e3, (end - begin) / 1e3, None, Args(**args))


def _text(number: int) -> Any:
    import msgspec  # noqa: PLC0415

    return msgspec.Raw(str(number).encode())


def _of_table(rows: Iterable[dict[str, str]]) -> Iterator[Event]:
    """Yield the kernels of the table."""
    agents: dict[str, int] = {}
    times: dict[str, float]
    for row in rows:
        try:
            times = {
                "start_timestamp": int(row["Start_Timestamp"]),
                "end_timestamp": int(row["End_Timestamp"]),
            }
            threads = math.prod(int(row[f"Workgroup_Size_{axis}"]) for axis in "XYZ")
            grid = math.prod(int(row[f"Grid_Size_{axis}"]) for axis in "XYZ")
        except (KeyError, TypeError, ValueError):
            times = {"start_timestamp": math.nan, "end_timestamp": math.nan}
            threads, grid = 1, 1
        args = {
            "device": agents.setdefault(row.get("Agent_Id") or "", len(agents)),
            "stream": row.get("Stream_Id") or row.get("Queue_Id") or 0,
            "grid": _text(grid // max(threads, 1)),
            "block": _text(threads),
        }
        yield _event("kernel", row.get("Kernel_Name") or "", times, (0, 0), args)
