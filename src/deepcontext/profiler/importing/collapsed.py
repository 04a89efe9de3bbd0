"""Reads collapsed stacks: one call path a line, ``outer;inner;leaf 123``, as FlameGraph's scripts write them.

The format has no units: values are samples. A frame may end with its file and line (``main train.py:12`` of
deepcontext, ``main (train.py:12)`` of py-spy), else it is native.
Source: Brendan Gregg, FlameGraph, stackcollapse-*.pl.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from deepcontext.errors import ProfileDataError
from deepcontext.profiler.importing.whole_file import content_of

if TYPE_CHECKING:
    from deepcontext.profiler.importing.reader import Contents
    from deepcontext.profiler.importing.source_file import SourceFile

_LINE: Final = re.compile(rb"\S.* \d+\r?")
_PLACE: Final = re.compile(
    r"(?P<name>.+?) (?:\((?P<in>[^()]+?)(?::(?P<at>\d+))?\)|(?P<file>[^ ]+):(?P<line>\d+))"
)


class CollapsedReader:
    """Reads collapsed stacks."""

    name = "a file of collapsed stacks"

    def recognises(self, head: bytes) -> bool:
        """Return whether all whole lines of the first bytes are stacks, and one of them has two frames."""
        lines = head.split(b"\n")
        whole = [line for line in (lines[:-1] or lines) if line.strip()]
        return b";" in head and bool(whole) and all(map(_LINE.fullmatch, whole))

    def read(self, file: SourceFile) -> Contents:
        """Read a file.

        Raises:
            ProfileDataError: a line is no stack, or there is none.
        """
        # Imported here, as the other readers do.
        from deepcontext.profiler.importing.stacks import Stacks, frame_of  # noqa: PLC0415

        stacks = Stacks([("samples", "count")])
        known: dict[str, int] = {}
        lines = content_of(file).decode("utf-8", "replace").split("\n")
        for number, line in enumerate(lines, 1):
            path, _, value = line.rstrip("\r").rpartition(" ")
            if not line.strip():
                continue
            if not path or not value.isdecimal():
                raise ProfileDataError(
                    f"cannot read '{file.path}': line {number:,} is no call path with a whole number at its "
                    "end; name a file of collapsed stacks"
                )
            frames = path.split(";")
            for text in frames:
                if text not in known:
                    found = _PLACE.fullmatch(text)
                    place = (found["name"], found["file"] or found["in"]) if found else (text, "")
                    at = int((found["line"] or found["at"] or "0")[:9]) if found else 0
                    known[text] = stacks.builder.frame(frame_of(*place, at))
            stacks.add([known[text] for text in frames], [int(value[:18])])
        if not stacks.has_values():
            raise ProfileDataError(f"cannot read '{file.path}': no call path has a value above 0")
        return stacks.contents("collapsed stacks")
