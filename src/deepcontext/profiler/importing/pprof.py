"""Reads pprof's ``profile.proto``, compressed or not: samples with locations, their lines and values.

Source: github.com/google/pprof, proto/profile.proto.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from deepcontext.errors import ProfileDataError
from deepcontext.profiler.importing.whole_file import content_of, damaged

if TYPE_CHECKING:
    from deepcontext.profiler.importing.reader import Contents
    from deepcontext.profiler.importing.source_file import SourceFile
    from deepcontext.profiler.importing.stacks import Stacks

# A first field with a type and a unit, both numbers of strings.
_START: Final = re.compile(
    rb"\n(?:\x02\x08[\x01-\x7f]|\x04\x08[\x01-\x7f]\x10[\x01-\x7f]|\x05\x08|\x06\x08)"
)
_MESSAGES: Final = {
    "Profile": {
        "sample_type": (1, "ValueType", True),
        "sample": (2, "Sample", True),
        "location": (4, "Location", True),
        "function": (5, "Function", True),
        "string_table": (6, "bytes", True),
        "time_nanos": (9, "int64", False),
        "duration_nanos": (10, "int64", False),
        "comment": (13, "int64", True),
    },
    "ValueType": {"type": (1, "int64", False), "unit": (2, "int64", False)},
    "Sample": {"location_id": (1, "uint64", True), "value": (2, "int64", True)},
    "Location": {
        "id": (1, "uint64", False),
        "address": (3, "uint64", False),
        "line": (4, "Line", True),
    },
    "Line": {"function_id": (1, "uint64", False), "line": (2, "int64", False)},
    "Function": {
        "id": (1, "uint64", False),
        "name": (2, "int64", False),
        "filename": (4, "int64", False),
    },
}
_LONGEST_NS: Final = 2**62


class PprofReader:
    """Reads files of pprof."""

    name = "a pprof file"

    def recognises(self, head: bytes) -> bool:
        """Return whether the first bytes are those of a type and a unit of values."""
        return bool(_START.match(head))

    def read(self, file: SourceFile) -> Contents:
        """Read a file.

        Raises:
            ProfileDataError: the file is damaged or has no values that are known.
        """
        from google.protobuf.message import DecodeError  # noqa: PLC0415  other commands start without it

        from deepcontext.profiler.model.message_classes import message_class  # noqa: PLC0415
        from deepcontext.profiler.model.run_info import RunInfo  # noqa: PLC0415

        try:
            found: Any = message_class("deepcontext.pprof", _MESSAGES, "Profile").FromString(
                content_of(file)
            )
            stacks = _stacks(found)
        except DecodeError as error:
            raise damaged(file, repr(error)) from error
        if not stacks.has_values():
            raise ProfileDataError(
                f"cannot read '{file.path}': no sample has a value above 0 in a unit of time or a count"
            )
        start, wall = found.time_nanos, found.duration_nanos
        run = RunInfo(
            start_unix_ns=start if 0 < start < _LONGEST_NS else 0,
            wall_ns=wall if 0 < wall < _LONGEST_NS else 0,
        )
        return stacks.contents("pprof", run)


def _stacks(found: Any) -> Stacks:
    from deepcontext.profiler.importing.stacks import Stacks, frame_of  # noqa: PLC0415

    texts = [text.decode("utf-8", "replace") for text in found.string_table]
    stacks = Stacks([(texts[each.type], texts[each.unit]) for each in found.sample_type])
    functions = {each.id: (texts[each.name], texts[each.filename]) for each in found.function}
    places: dict[int, list[int]] = {}
    for each in found.location:
        # Inlined functions of one address, the innermost first.
        frames = [frame_of(*functions[line.function_id], line.line) for line in each.line]
        frames = frames or [frame_of(f"0x{each.address:x}")]
        places[each.id] = [stacks.builder.frame(frame) for frame in reversed(frames)]
    for sample in found.sample:
        path = [frame for number in reversed(sample.location_id) for frame in places[number]]
        stacks.add(path, list(sample.value)[: len(stacks.columns)])
    return stacks
