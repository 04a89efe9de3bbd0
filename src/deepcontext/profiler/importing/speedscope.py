"""Reads speedscope's JSON: profiles of weighted stacks, or of frames that open and close.

Profiles of one file with the same paths are measures of one run where deepcontext wrote them, else threads.
Source: github.com/jlfwong/speedscope, src/lib/file-format-spec.ts.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from deepcontext.errors import ProfileDataError
from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.profiler.importing.whole_file import json_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deepcontext.profiler.importing.reader import Contents
    from deepcontext.profiler.importing.source_file import SourceFile
    from deepcontext.profiler.importing.stacks import Stacks

_SCHEMA: Final = b"speedscope.app/file-format-schema.json"
_MEASURE: Final = re.compile(r".*\((?P<key>\w+)\)")
_OWN: Final = "deepcontext"


class SpeedscopeReader:
    """Reads files of speedscope."""

    name = "a speedscope file"

    def recognises(self, head: bytes) -> bool:
        """Return whether the first bytes name speedscope's schema."""
        return head.lstrip()[:1] == b"{" and _SCHEMA in head

    def read(self, file: SourceFile) -> Contents:
        """Read a file.

        Raises:
            ProfileDataError: the file is damaged or has no values.
        """
        content = json_of(file, dict[str, Any])
        stacks = _stacks(content)
        if not stacks.has_values():
            raise ProfileDataError(
                f"cannot read '{file.path}': no profile in it has a value above 0 in a unit of time or "
                "a count"
            )
        return stacks.contents(str(content.get("exporter") or "speedscope"))


def _stacks(content: dict[str, Any]) -> Stacks:
    from deepcontext.profiler.importing.stacks import Stacks, frame_of  # noqa: PLC0415

    profiles = content["profiles"]
    is_own = content.get("exporter") == _OWN
    columns: list[tuple[str, str]] = []
    places = []
    for each in profiles:
        found = _MEASURE.fullmatch(str(each["name"])) if is_own else None
        column = (found["key"] if found else "time", str(each["unit"]))
        if column not in columns:
            columns.append(column)
        places.append(columns.index(column))
    stacks = Stacks(columns)
    frames = [
        stacks.builder.frame(
            frame_of(str(each["name"]), str(each.get("file") or ""), int(each.get("line") or 0))
        )
        for each in content["shared"]["frames"]
    ]
    for each, place in zip(profiles, places, strict=True):
        thread = []
        if not is_own and len(profiles) > 1:
            thread = [stacks.builder.frame(Frame(FrameKind.THREAD, str(each["name"])))]
        for path, value in _weighted(each):
            values = [0.0] * len(columns)
            values[place] = value
            stacks.add(thread + [frames[_index(number)] for number in path], values)
    return stacks


def _index(number: int) -> int:
    if number < 0:
        raise ValueError(number)
    return number


def _weighted(profile: dict[str, Any]) -> Iterator[tuple[list[int], float]]:
    if profile["type"] == "sampled":
        yield from zip(profile["samples"], profile["weights"], strict=True)
        return
    path: list[int] = []
    last = profile["startValue"]
    for event in profile["events"]:
        if path and event["at"] > last:
            yield list(path), event["at"] - last
        last = event["at"]
        if event["type"] == "O":
            path.append(event["frame"])
        elif not path or path.pop() != event["frame"]:
            raise ValueError("a frame is closed that is not the innermost open one")
