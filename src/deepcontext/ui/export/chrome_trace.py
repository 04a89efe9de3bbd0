"""The Trace Event Format of chrome://tracing, JSON, which Perfetto, speedscope and TensorBoard open, too.

Source: "Trace Event Format", docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from deepcontext.profiler.format.writing import FileKind
from deepcontext.ui.export.formats import Format
from deepcontext.ui.export.time_line import time_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deepcontext.profiler.model.profile import Profile
    from deepcontext.ui.export.time_line import TimeLine, Track

_NS_IN_US: Final = 1_000
_HEAD: Final = {"otherData": {"exporter": "deepcontext"}, "displayTimeUnit": "ms"}


def encode(profile: Profile) -> bytes:
    """Return the file's content.

    Raises:
        QueryError: the profile has no kept step.
    """
    line, pid = time_line(profile), profile.run.pid
    made = {**_HEAD, "traceEvents": [{**event, "pid": pid} for event in _events(line)]}
    # A lone surrogate (an undecodable byte of a file name) becomes an escape, which JSON allows.
    return json.dumps(made, separators=(",", ":")).encode()


def _events(line: TimeLine) -> Iterator[dict[str, Any]]:
    yield {"ph": "M", "name": "process_name", "args": {"name": line.title}}
    for counter in line.counters:
        for moment_ns, value in counter.points:
            yield {
                "ph": "C",
                "name": f"{counter.name}, {counter.unit}" if counter.unit else counter.name,
                "ts": moment_ns / _NS_IN_US,
                "args": {"value": value},
            }
    for place, track in enumerate(line.tracks):
        yield from _track(track, place + 1)


def _track(track: Track, number: int) -> Iterator[dict[str, Any]]:
    yield {"ph": "M", "name": "thread_name", "tid": number, "args": {"name": track.name}}
    yield {"ph": "M", "name": "thread_sort_index", "tid": number, "args": {"sort_index": number}}
    for event in track.events:
        yield {
            "ph": "X",
            "tid": number,
            "ts": event.begin_ns / _NS_IN_US,
            "dur": (event.end_ns - event.begin_ns) / _NS_IN_US,
            "name": event.name,
            "cat": event.category,
            "args": dict(event.details),
        }


FORMAT: Final = Format(
    None,
    ".trace.json",
    # Other programs also write this format; `encode` writes these fields first.
    FileKind.beginning_with(
        "a Chrome trace of deepcontext", json.dumps(_HEAD, separators=(",", ":"))[:-1].encode()
    ),
    opened_by="drag {} onto https://ui.perfetto.dev",
    of_profile=encode,
)
