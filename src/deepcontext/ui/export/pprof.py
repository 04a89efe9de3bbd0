"""pprof's compressed `profile.proto`: one sample per call path, one value per measure, a phase label.

Field numbers are from github.com/google/pprof, proto/profile.proto.
"""

from __future__ import annotations

import gzip
import io
from typing import TYPE_CHECKING, Any, Final

from deepcontext.profiler.format.frame import Phase
from deepcontext.profiler.format.writing import FileKind
from deepcontext.profiler.model.message_classes import MessageTable, message_class
from deepcontext.ui.export.formats import Format

if TYPE_CHECKING:
    from deepcontext.ui.export.stacks import Stacks

# Only the fields that are written here; an int64 that names something is an index into `string_table`.
MESSAGES: Final[MessageTable] = {
    "Profile": {
        "sample_type": (1, "ValueType", True),
        "sample": (2, "Sample", True),
        "location": (4, "Location", True),
        "function": (5, "Function", True),
        "string_table": (6, "string", True),
        "time_nanos": (9, "int64", False),
        "duration_nanos": (10, "int64", False),
        "comment": (13, "int64", True),
        "default_sample_type": (14, "int64", False),
    },
    "ValueType": {"type": (1, "int64", False), "unit": (2, "int64", False)},
    "Sample": {
        "location_id": (1, "uint64", True),
        "value": (2, "int64", True),
        "label": (3, "Label", True),
    },
    "Label": {"key": (1, "int64", False), "str": (2, "int64", False)},
    "Location": {"id": (1, "uint64", False), "line": (4, "Line", True)},
    "Line": {"function_id": (1, "uint64", False), "line": (2, "int64", False)},
    "Function": {
        "id": (1, "uint64", False),
        "name": (2, "int64", False),
        "system_name": (3, "int64", False),
        "filename": (4, "int64", False),
    },
}
# gzip stores the name of the packed file, which identifies deepcontext's files without unpacking.
_NAME: Final = "deepcontext.pb"
# RFC 1952: magic, deflate, a name follows; no time; slowest compression, any system; the name.
_HEADER: Final = b"\x1f\x8b\x08\x08" + bytes(4) + b"\x02\xff" + _NAME.encode() + b"\0"
_UNITS: Final = {"ns": "nanoseconds"}


PROFILE_CLASS: Final = message_class("perftools.profiles", MESSAGES, "Profile")


class _Strings:
    """The string table; pprof requires that the first string is empty."""

    def __init__(self) -> None:
        self.known = {"": 0}

    def place(self, text: str) -> int:
        """Return the index of a text; add the text if it is new."""
        # A lone surrogate (an undecodable byte of a file name) has no UTF-8 form.
        clean = text.encode("utf-8", "replace").decode()
        return self.known.setdefault(clean, len(self.known))


def encode(stacks: Stacks) -> bytes:
    """Return the file's content; pprof shows the first measure first."""
    strings = _Strings()
    made: Any = PROFILE_CLASS()
    for measure in stacks.measures:
        unit = _UNITS.get(measure.unit, measure.unit)
        made.sample_type.add(type=strings.place(measure.key), unit=strings.place(unit))
    made.default_sample_type = strings.place(stacks.measures[0].key)
    run = stacks.profile.run
    made.time_nanos, made.duration_nanos = run.start_unix_ns, run.wall_ns
    made.comment.append(strings.place(f"deepcontext: {' '.join(run.command) or run.script}"))
    _add_locations(made, stacks, strings)
    _add_samples(made, stacks, strings)
    made.string_table.extend(strings.known)
    packed = io.BytesIO()
    with gzip.GzipFile(_NAME, "wb", fileobj=packed, mtime=0) as file:
        file.write(made.SerializeToString())
    return packed.getvalue()


def _add_locations(made: Any, stacks: Stacks, strings: _Strings) -> None:
    """Add a location for every frame, with the frame's index plus one as id; 0 means no location."""
    functions: dict[tuple[str, str], int] = {}
    for index in range(len(stacks.profile.frames)):
        frame = stacks.profile.frames[index]
        key = (frame.name or "(unnamed)", frame.file)
        number = functions.setdefault(key, len(functions) + 1)
        made.location.add(id=index + 1).line.add(function_id=number, line=frame.line)
    for (name, file), number in functions.items():
        place = strings.place(name)
        made.function.add(id=number, name=place, system_name=place, filename=strings.place(file))


def _add_samples(made: Any, stacks: Stacks, strings: _Strings) -> None:
    key = strings.place("phase")
    phases = {phase.value: strings.place(phase.label) for phase in Phase if phase != Phase.NONE}
    phase_of, values = stacks.profile.tree.phase.tolist(), stacks.values.T.tolist()
    for node, path in stacks.paths():
        sample = made.sample.add(value=values[node])
        sample.location_id.extend([frame + 1 for frame in reversed(path)])  # the leaf first
        if phase_of[node] in phases:
            sample.label.add(key=key, str=phases[phase_of[node]])


FORMAT: Final = Format(
    encode,
    ".pb.gz",
    FileKind.beginning_with("a pprof file of deepcontext", _HEADER),
    opened_by="go tool pprof -http=: {}",
)
