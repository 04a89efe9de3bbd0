"""Reads XPlane files of JAX's profiler (``*.xplane.pb``): threads of the host, calls, kernels with their HLO.

A device plane has one line a stream; lines that the tool derived from the streams repeat them and are not
read. The name of an HLO operation and of its program stand at each launch, and become the scopes around it.
Source: github.com/openxla/xla, tsl/profiler/protobuf/xplane.proto.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from deepcontext.errors import ProfileDataError
from deepcontext.profiler.importing.whole_file import content_of, damaged

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deepcontext.profiler.importing.kineto.event_stream import Event
    from deepcontext.profiler.importing.reader import Contents
    from deepcontext.profiler.importing.source_file import SourceFile

# A first plane, with a number or without, whose name is one that the profiler gives.
_START: Final = re.compile(
    rb"\n[\x80-\xff]{0,9}[\x00-\x7f](?:\x08[\x80-\xff]{0,9}[\x00-\x7f])?"
    rb"\x12[\x01-\x7f](?:/host:|/device:|Task Environment)"
)
_MESSAGES: Final = {
    "XSpace": {"planes": (1, "XPlane", True)},
    "XPlane": {
        "name": (2, "bytes", False),
        "lines": (3, "XLine", True),
        "event_metadata": (4, "EventEntry", True),
        "stat_metadata": (5, "StatEntry", True),
        "stats": (6, "XStat", True),
    },
    "EventEntry": {"key": (1, "int64", False), "value": (2, "Named", False)},
    "StatEntry": {"key": (1, "int64", False), "value": (2, "Named", False)},
    "Named": {"name": (2, "bytes", False)},
    "XLine": {
        "name": (2, "bytes", False),
        "timestamp_ns": (3, "int64", False),
        "events": (4, "XEvent", True),
    },
    "XEvent": {
        "metadata_id": (1, "int64", False),
        "offset_ps": (2, "int64", False),
        "duration_ps": (3, "int64", False),
        "stats": (4, "XStat", True),
    },
    "XStat": {
        "metadata_id": (1, "int64", False),
        "uint64_value": (3, "uint64", False),
        "int64_value": (4, "int64", False),
        "str_value": (5, "bytes", False),
        "ref_value": (7, "uint64", False),
    },
}
_DEVICE: Final = re.compile(r"/device:(?P<kind>\w+):(?P<number>\d{1,6})")
_STREAM: Final = re.compile(r"Stream #(?P<number>\d+)")
_PYTHON: Final = re.compile(r"\$(?P<file>[^ ]+):(?P<line>\d+) (?P<name>.*)", re.DOTALL)
_KERNEL_SHAPE: Final = re.compile(r"grid:(\d+),(\d+),(\d+) block:(\d+),(\d+),(\d+)")
_SIZE: Final = re.compile(r"size:(\d+)")
_COPY: Final = re.compile(r"Memcpy ?(\w)(?:to|2)(\w)")
_WITHOUT_FOLDERS: Final = (
    "source files have no folders in this file: lines of libraries look like the program's own"
)
_MAIN_LINE: Final = "python"
_PROCESS: Final = 1  # the number of the only process, and of its main thread


class XPlaneReader:
    """Reads XPlane files."""

    name = "an XPlane file of JAX's profiler"

    def recognises(self, head: bytes) -> bool:
        """Return whether the first bytes are those of a plane with a known name."""
        return bool(_START.match(head))

    def read(self, file: SourceFile) -> Contents:
        """Read a file.

        Raises:
            ProfileDataError: the file is damaged or has no events.
        """
        # Imported here, so that other commands start without them.
        from google.protobuf.message import DecodeError  # noqa: PLC0415

        from deepcontext.profiler.model.message_classes import message_class  # noqa: PLC0415

        try:
            space: Any = message_class("deepcontext.xplane", _MESSAGES, "XSpace").FromString(
                content_of(file)
            )
        except DecodeError as error:
            raise damaged(file, error) from error
        return _contents(file, [_Plane(plane) for plane in space.planes])


class _Plane:
    """One plane with its names."""

    def __init__(self, plane: Any) -> None:
        self.name = _text(plane.name)
        self.lines = plane.lines
        self._stats = plane.stats
        self._event_names = {each.key: _text(each.value.name) for each in plane.event_metadata}
        self._stat_names = {each.key: _text(each.value.name) for each in plane.stat_metadata}
        found = _DEVICE.match(self.name)
        self.device = int(found["number"]) if found else None
        self.facts = self.values(plane.stats)

    def name_of(self, event: Any) -> str:
        """Return the name of an event."""
        return self._event_names.get(event.metadata_id, "")

    def values(self, stats: Any) -> dict[str, int | str]:
        """Return values by name."""
        return {self._stat_names.get(each.metadata_id, ""): self._value(each) for each in stats}

    def _value(self, stat: Any) -> int | str:
        if stat.HasField("str_value"):
            return _text(stat.str_value)
        if stat.HasField("ref_value"):
            return self._stat_names.get(stat.ref_value, "")
        return int(stat.uint64_value or stat.int64_value)


def _contents(file: SourceFile, planes: list[_Plane]) -> Contents:
    from deepcontext.profiler.importing.device_events import (  # noqa: PLC0415
        Said,
        in_batches,
        thread_names,
    )
    from deepcontext.profiler.importing.kineto.columns import Columns, Kind  # noqa: PLC0415
    from deepcontext.profiler.importing.kineto.contents import contents_from  # noqa: PLC0415

    columns, known = Columns(), dict[tuple[int | str, int | str], str]()
    columns.read(in_batches(event for plane in planes for event in _events(plane, known)))
    if not columns.threads and not len(columns.device):
        raise ProfileDataError(
            f"cannot read '{file.path}': {len(planes):,} planes, and none has events of a host or a GPU; "
            "name a file that jax.profiler.trace wrote"
        )
    columns.thread_names |= thread_names(columns, known)
    devices = [plane for plane in planes if plane.device is not None]
    is_amd = any(plane.facts.get("device_vendor") == "AMD" for plane in devices)
    others = sorted({plane.name for plane in devices if not _is_gpu(plane)})
    notes = [f"only GPUs are read of the devices: {', '.join(others)} left out"] if others else []
    if any(kind == Kind.PYTHON for kind, _ in columns.names):
        notes.append(_WITHOUT_FOLDERS)
    lacks = {
        "memory": "an XPlane file has no allocations",
        "cpu sampling": "an XPlane file has no samples: time is not divided into running and waiting",
    }
    said = Said(
        "JAX's profiler (XPlane)", "amd" if is_amd else "nvidia", columns, lacks, tuple(notes)
    )
    return contents_from(columns, _facts(planes, is_amd=is_amd), said)


def _facts(planes: list[_Plane], *, is_amd: bool) -> dict[str, object]:
    """Return what torch.profiler would write beside the events."""
    environment = next((plane.facts for plane in planes if plane.name == "Task Environment"), {})
    return {
        "interface": "xplane",
        "hip_driver_version" if is_amd else "cupti_version": "",
        "baseTimeNanoseconds": environment.get("profile_start_time", 0),
        "deviceProperties": [
            {
                "id": plane.device,
                "totalGlobalMem": plane.facts.get("memory_size", 0),
                "numSms": plane.facts.get("core_count", 0),
            }
            for plane in planes
            if plane.device is not None
        ],
    }


def _is_gpu(plane: _Plane) -> bool:
    return plane.name.startswith("/device:GPU")


def _events(plane: _Plane, names: dict[tuple[int | str, int | str], str]) -> Iterator[Event]:
    """Yield the events of a plane; add the names of its threads."""
    for number, line in enumerate(plane.lines):
        name = _text(line.name)
        stream = _STREAM.match(name)
        if plane.device is not None:
            if stream and _is_gpu(plane):
                yield from _of_stream(plane, line, plane.device, int(stream["number"]))
        elif plane.name == "/host:CPU":
            # Numbers of threads differ from run to run.
            short = name.partition("/")[0]
            thread = (_PROCESS, _PROCESS if short == _MAIN_LINE else number + 2)
            names[thread] = short
            yield from _of_thread(plane, line, thread)


def _of_thread(plane: _Plane, line: Any, thread: tuple[int, int]) -> Iterator[Event]:
    from deepcontext.profiler.importing.kineto.columns import STEP_MARK  # noqa: PLC0415
    from deepcontext.profiler.importing.kineto.event_stream import Args, Event  # noqa: PLC0415

    for event in line.events:
        name, values, times = plane.name_of(event), plane.values(event.stats), _times(line, event)
        if "correlation_id" in values:
            for scope in (values.get("hlo_module"), values.get("hlo_op")):
                if scope:
                    yield Event("X", "user_annotation", str(scope), *thread, *times)
            args = Args(correlation=values["correlation_id"])
            yield Event("X", "cuda_runtime", name, *thread, *times, None, args)
        elif name.startswith("$"):
            found = _PYTHON.fullmatch(name)
            place = f"{found['file']}({found['line']}): {found['name']}" if found else name[1:]
            yield Event("X", "python_function", place, *thread, *times)
        elif "step_num" in values:
            yield Event("X", "user_annotation", f"{STEP_MARK}{values['step_num']}", *thread, *times)
        else:
            yield Event("X", "user_annotation", name, *thread, *times)


def _of_stream(plane: _Plane, line: Any, device: int, stream: int) -> Iterator[Event]:
    import msgspec  # noqa: PLC0415

    from deepcontext.profiler.importing.kineto.event_stream import Args, Event  # noqa: PLC0415

    for event in line.events:
        name, values = plane.name_of(event).removesuffix(".kd"), plane.values(event.stats)
        args = Args(correlation=values.get("correlation_id"), device=device, stream=stream)
        shape = _KERNEL_SHAPE.search(str(values.get("kernel_details", "")))
        if shape:
            args.grid = msgspec.Raw(",".join(shape.groups()[:3]).encode())
            args.block = msgspec.Raw(",".join(shape.groups()[3:]).encode())
        moved = _SIZE.search(str(values.get("memcpy_details") or values.get("memset_details", "")))
        args.bytes = int(moved[1][:18]) if moved else None
        category = "kernel"
        if name.startswith(("Memcpy", "Memset")):
            category = "gpu_memset" if name.startswith("Memset") else "gpu_memcpy"
            name = _COPY.sub(r"Memcpy \1to\2", name)
        yield Event("X", category, name, 0, 0, *_times(line, event), None, args)


def _times(line: Any, event: Any) -> tuple[float, float]:
    """Return begin and duration in us."""
    return line.timestamp_ns / 1e3 + event.offset_ps / 1e6, event.duration_ps / 1e6


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
