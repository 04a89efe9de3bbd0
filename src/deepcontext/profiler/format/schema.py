"""The schema of the .dcprof file as a table; `profile.proto` is the same, documented.

Holds field numbers and types for both sides: the writer encodes by them without any library
(`wire.py`), the reader builds message classes from them (`messages.py`). No generated code: that
would tie the package to one major version of protobuf.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

FORMAT = "deepcontext profile"
MAJOR = 1
MINOR = 3
PACKAGE = "deepcontext.profile.v1"
# The first field of every file, a string of 19 bytes.
MAGIC = b"\x0a\x13" + FORMAT.encode()


class Shape(enum.Enum):
    """How often a field occurs."""

    ONE = enum.auto()
    OPTIONAL = enum.auto()  # presence is recorded
    REPEATED = enum.auto()
    MAP = enum.auto()  # from string


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a message.

    Attributes:
        name: field name.
        number: field number on the wire; never reused.
        type: scalar type of protobuf, or the name of a message or enum; of a map, the value's.
        shape: how often it occurs.
    """

    name: str
    number: int
    type: str
    shape: Shape = Shape.ONE


def _columns(types: Iterable[str], first: int = 1) -> tuple[Field, ...]:
    return tuple(Field(name, number, "Column") for number, name in enumerate(types, first))


COLUMN_TYPES = {"UINT8": 1, "UINT32": 2, "INT32": 3, "UINT64": 4, "INT64": 5, "FLOAT64": 6}
# Type of each column of a table; of a metric those that follow its descriptor.
FRAME_TYPES = {"kind": "UINT8", "name": "UINT32", "file": "UINT32", "line": "UINT32"}
NODE_TYPES = {"parent": "INT32", "frame": "UINT32", "phase": "UINT8", "subtree_end": "INT32"}
ROW_TYPES = {
    "node": "UINT32",
    "count": "UINT64",
    "total": "INT64",
    "minimum": "INT64",
    "maximum": "INT64",
    "m2": "FLOAT64",
}
WINDOW_ROW_TYPES = {"node_step": "UINT32", "count": "INT64", "total": "INT64"}
SPAN_TYPES = {"node_step": "INT32", "end_step": "INT64", "duration_ns": "INT64"}
ENCODINGS = {"RAW": 0, "ZLIB": 1}
# Enum name -> (message it is nested in, values).
ENUMS: dict[str, tuple[str, dict[str, int]]] = {
    "Type": ("Column", {"TYPE_UNSPECIFIED": 0} | COLUMN_TYPES),
    "Encoding": ("Column", ENCODINGS),
    "Aggregation": (
        "Metric",
        {"AGGREGATION_UNSPECIFIED": 0, "SUM": 1, "MAX": 2, "PROPERTY": 3},
    ),
}
MESSAGES: dict[str, tuple[Field, ...]] = {
    "ProfileFile": (
        Field("format", 1, "string"),
        Field("major", 2, "uint32"),
        Field("minor", 3, "uint32"),
        Field("body_crc32", 4, "uint32"),
        Field("body", 5, "bytes"),
    ),
    "ProfileBody": (
        Field("strings", 1, "string", Shape.REPEATED),
        Field("frames", 2, "FrameTable"),
        Field("nodes", 3, "NodeTable"),
        Field("metrics", 4, "Metric", Shape.REPEATED),
        Field("run", 5, "RunInfo"),
        Field("trust", 6, "TrustReport"),
        Field("sections", 7, "bytes", Shape.MAP),
    ),
    "Column": (
        Field("type", 1, "Type"),
        Field("count", 2, "uint64"),
        Field("encoding", 3, "Encoding"),
        Field("data", 4, "bytes"),
    ),
    "FrameTable": _columns(FRAME_TYPES),
    "NodeTable": _columns(NODE_TYPES),
    "Metric": (
        Field("name", 1, "string"),
        Field("unit", 2, "string"),
        Field("aggregation", 3, "Aggregation"),
        Field("description", 4, "string"),
        *_columns(ROW_TYPES, first=5),
    ),
    "RunInfo": (
        Field("command", 1, "string", Shape.REPEATED),
        Field("script", 2, "string"),
        Field("cwd", 3, "string"),
        Field("python", 4, "string"),
        Field("platform", 5, "string"),
        Field("hostname", 6, "string"),
        Field("cpu_model", 7, "string"),
        Field("cpu_count", 8, "int64"),
        Field("frameworks", 9, "string", Shape.MAP),
        Field("start_unix_ns", 10, "int64"),
        Field("wall_ns", 11, "int64"),
        Field("cpu_user_ns", 12, "int64"),
        Field("cpu_system_ns", 13, "int64"),
        Field("peak_rss_bytes", 14, "int64"),
        Field("pid", 15, "int64"),
        Field("exit_reason", 16, "string"),
        Field("steps", 17, "int64"),
        Field("options", 18, "string", Shape.MAP),
        Field("rank", 19, "int64"),
        Field("ranks", 20, "int64"),
        Field("parent_pid", 21, "int64"),
        Field("process_name", 22, "string"),
        Field("rank_source", 23, "string"),
        Field("attempt", 24, "int64"),
        Field("local_rank", 25, "int64"),
        Field("local_ranks", 26, "int64"),
        Field("pid_space", 27, "string"),
    ),
    "TrustReport": (
        Field("collectors", 1, "CollectorReport", Shape.REPEATED),
        Field("counters", 2, "int64", Shape.MAP),
        Field("hook_cost_ns_per_event", 3, "double", Shape.OPTIONAL),
        Field("notes", 4, "string", Shape.REPEATED),
    ),
    "CollectorReport": (
        Field("name", 1, "string"),
        Field("status", 2, "string"),
        Field("reason", 3, "string"),
        Field("details", 4, "string", Shape.MAP),
    ),
    # Payload of the section `windows`.
    "WindowTable": (
        Field("windows", 1, "Window", Shape.REPEATED),
        Field("estimated", 2, "string", Shape.REPEATED),
        Field("node_count", 3, "uint64"),
    ),
    "Window": (
        Field("first_step", 1, "int64"),
        Field("end_step", 2, "int64"),
        Field("begin_ns", 3, "int64"),
        Field("end_ns", 4, "int64"),
        Field("cpu_user_ns", 5, "int64"),
        Field("cpu_system_ns", 6, "int64"),
        Field("timed_steps", 7, "int64"),
        Field("step_total_ns", 8, "int64"),
        Field("step_minimum_ns", 9, "int64"),
        Field("step_maximum_ns", 10, "int64"),
        Field("step_m2", 11, "double"),
        Field("metrics", 12, "WindowMetric", Shape.REPEATED),
    ),
    "WindowMetric": (
        Field("name", 1, "string"),
        *_columns(WINDOW_ROW_TYPES, first=2),
    ),
    # Payload of the section `exemplars`.
    "ExemplarTable": (
        Field("exemplars", 1, "Exemplar", Shape.REPEATED),
        Field("node_count", 2, "uint64"),
    ),
    "Exemplar": (
        Field("number", 1, "int64"),
        Field("begin_ns", 2, "int64"),
        Field("end_ns", 3, "int64"),
        Field("reasons", 4, "uint32"),
        Field("lanes", 5, "ExemplarLane", Shape.REPEATED),
        Field("rank", 6, "uint32"),
    ),
    "ExemplarLane": (
        Field("name", 1, "string"),
        Field("recorder", 2, "uint32"),
        Field("is_device", 3, "bool"),
        Field("device", 4, "uint32"),
        Field("stream", 5, "uint32"),
        Field("known_from_ns", 6, "int64"),
        *_columns(SPAN_TYPES, first=7),
    ),
}
