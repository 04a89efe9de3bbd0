"""Perfetto's trace: a track for each thread and stream of the kept steps, and tracks of counters.

Field numbers are from github.com/google/perfetto, protos/perfetto/trace. Names and details repeat, so the
trace refers to them by number (interned data). One sequence of packets: Perfetto sorts them by time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from deepcontext.profiler.format.writing import FileKind
from deepcontext.profiler.model.message_classes import MessageTable, message_class
from deepcontext.ui.export.formats import Format
from deepcontext.ui.export.time_line import time_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deepcontext.profiler.model.profile import Profile
    from deepcontext.ui.export.time_line import Counter, Event, Track

MESSAGES: Final[MessageTable] = {
    "Trace": {"packet": (1, "TracePacket", True)},
    "TracePacket": {
        "timestamp": (8, "uint64", False),
        "trusted_packet_sequence_id": (10, "uint32", False),
        "track_event": (11, "TrackEvent", False),
        "interned_data": (12, "InternedData", False),
        "sequence_flags": (13, "uint32", False),
        "track_descriptor": (60, "TrackDescriptor", False),
    },
    "TrackEvent": {
        "category_iids": (3, "uint64", True),
        "debug_annotations": (4, "DebugAnnotation", True),
        "type": (9, "int32", False),
        "name_iid": (10, "uint64", False),
        "track_uuid": (11, "uint64", False),
        "double_counter_value": (44, "double", False),
    },
    "TrackDescriptor": {
        "uuid": (1, "uint64", False),
        "name": (2, "string", False),
        "process": (3, "ProcessDescriptor", False),
        "parent_uuid": (5, "uint64", False),
        "counter": (8, "CounterDescriptor", False),
        "child_ordering": (11, "int32", False),
        "sibling_order_rank": (12, "int32", False),
    },
    "ProcessDescriptor": {"pid": (1, "int32", False), "process_name": (6, "string", False)},
    "CounterDescriptor": {"unit_name": (6, "string", False)},
    "InternedData": {
        "event_categories": (1, "EventCategory", True),
        "event_names": (2, "EventName", True),
        "debug_annotation_names": (3, "DebugAnnotationName", True),
        "debug_annotation_string_values": (29, "InternedString", True),
    },
    "EventCategory": {"iid": (1, "uint64", False), "name": (2, "string", False)},
    "EventName": {"iid": (1, "uint64", False), "name": (2, "string", False)},
    "DebugAnnotation": {
        "name_iid": (1, "uint64", False),
        "string_value_iid": (17, "uint64", False),
    },
    "DebugAnnotationName": {"iid": (1, "uint64", False), "name": (2, "string", False)},
    "InternedString": {"iid": (1, "uint64", False), "str": (2, "bytes", False)},
}
TRACE_CLASS: Final = message_class("perfetto.protos", MESSAGES, "Trace")

_SEQUENCE: Final = 1
_CLEARED, _NEEDS_NAMES = 1, 2  # TracePacket.SequenceFlags
_BEGIN, _END, _COUNTER = 1, 2, 4  # TrackEvent.Type
_EXPLICIT: Final = 3  # TrackDescriptor.ChildTracksOrdering
_MARK: Final = "deepcontext: "
_PROCESS: Final = 1  # uuid of its track; those of the others follow


class _Names:
    """Texts that a trace refers to by number, by what they name."""

    def __init__(self) -> None:
        self._known: dict[str, dict[str, int]] = {}

    def number(self, kind: str, text: str) -> int:
        """Return the number of a text, from 1."""
        known = self._known.setdefault(kind, {})
        return known.setdefault(text, len(known) + 1)

    def add_to(self, data: Any) -> None:
        """Add all texts to a message `InternedData`."""
        for kind, known in self._known.items():
            field = getattr(data, kind)
            for text, number in known.items():
                # A lone surrogate (an undecodable byte of a file name) has no UTF-8 form.
                clean = text.encode("utf-8", "replace")
                if kind == "debug_annotation_string_values":
                    field.add(iid=number, str=clean)
                else:
                    field.add(iid=number, name=clean.decode())


def encode(profile: Profile) -> bytes:
    """Return the file's content.

    Raises:
        QueryError: the profile has no kept step.
    """
    line = time_line(profile)
    trace: Any = TRACE_CLASS()
    process = trace.packet.add(trusted_packet_sequence_id=_SEQUENCE).track_descriptor
    process.uuid, process.child_ordering = _PROCESS, _EXPLICIT
    process.process.pid = profile.run.pid
    process.process.process_name = _clean(f"{_MARK}{line.title}")
    names = _Names()
    # Before all packets that refer to names.
    cleared = trace.packet.add(trusted_packet_sequence_id=_SEQUENCE, sequence_flags=_CLEARED)
    tracks: list[Track | Counter] = [line.tracks[0], *line.counters, *line.tracks[1:]]
    for rank, track in enumerate(tracks):
        described = trace.packet.add(trusted_packet_sequence_id=_SEQUENCE).track_descriptor
        described.uuid, described.parent_uuid = _PROCESS + 1 + rank, _PROCESS
        described.name, described.sibling_order_rank = _clean(track.name), rank
        _add_events(trace, described, track, names)
    names.add_to(cleared.interned_data)
    content: bytes = trace.SerializeToString()
    return content


def _clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _add_events(trace: Any, described: Any, track: Track | Counter, names: _Names) -> None:
    points = getattr(track, "points", None)
    if points is not None:
        described.counter.unit_name = track.unit  # type: ignore[union-attr]
        for moment_ns, value in points:
            event = _packet(trace, moment_ns, _COUNTER, described.uuid)
            event.double_counter_value = value
        return
    opened: list[int] = []  # ends of the events around
    for event in track.events:  # type: ignore[union-attr]
        while opened and opened[-1] <= event.begin_ns:
            _packet(trace, opened.pop(), _END, described.uuid)
        _begin(_packet(trace, event.begin_ns, _BEGIN, described.uuid), event, names)
        opened.append(event.end_ns)
    while opened:
        _packet(trace, opened.pop(), _END, described.uuid)


def _packet(trace: Any, moment_ns: int, kind: int, track: int) -> Any:
    packet = trace.packet.add(
        timestamp=moment_ns, trusted_packet_sequence_id=_SEQUENCE, sequence_flags=_NEEDS_NAMES
    )
    packet.track_event.type, packet.track_event.track_uuid = kind, track
    return packet.track_event


def _begin(message: Any, event: Event, names: _Names) -> None:
    message.name_iid = names.number("event_names", event.name)
    message.category_iids.append(names.number("event_categories", event.category))
    details: Mapping[str, str] = event.details
    for name, value in details.items():
        message.debug_annotations.add(
            name_iid=names.number("debug_annotation_names", name),
            string_value_iid=names.number("debug_annotation_string_values", value),
        )


def _matches(head: bytes, name: str) -> bool:
    """Whether a file begins with the name of a process that `encode` gives."""
    del name
    return head[:1] == b"\x0a" and _MARK.encode() in head[:64]


FORMAT: Final = Format(
    None,
    ".perfetto-trace",
    FileKind("a Perfetto trace of deepcontext", _matches),
    opened_by="drag {} onto https://ui.perfetto.dev",
    of_profile=encode,
)
