"""The outer message of a profile file: whether it is a profile, complete, and readable by this build.

    OFFSET  SIZE    DESCRIPTION
    0       2       0a 13: field 1 (`format`), 19 bytes long
    2       19      "deepcontext profile"
    21      varies  fields of `ProfileFile`, each a tag and a value in protobuf's wire format:
                    2 `major`, 3 `minor`, 4 `body_crc32`, 5 `body`; unknown ones are skipped

Parsed by hand, so that an error can name the offset. Does not look into the body. Invariant: the
version is checked before the checksum, and the checksum before the body is parsed.
"""

from __future__ import annotations

import shlex
import zlib
from dataclasses import dataclass, field

from deepcontext.errors import ProfileDataError
from deepcontext.profiler.format import schema

_MAX_VARINT_SIZE = 10
_NUMBERS = {each.name: each.number for each in schema.MESSAGES["ProfileFile"]}
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_FIXED_SIZES = {_FIXED64: 8, _FIXED32: 4}


@dataclass(frozen=True, slots=True)
class Body:
    """The inner message of a file whose checksum matches.

    Attributes:
        content: a serialised `ProfileBody`.
        is_newer: a newer minor version wrote the file, so unknown values are not damage.
    """

    content: bytes
    is_newer: bool


def open_body(content: bytes, source: str) -> Body:
    """Check the outer message of a profile file and return the inner one.

    Args:
        content: the whole file.
        source: name of the file in errors.

    Raises:
        ProfileDataError: the file is not a profile, is truncated or damaged, or is too new.
    """
    if not content:
        raise ProfileDataError(
            f"cannot read '{source}': the file is empty; was the program killed before the profile "
            "was written?"
        )
    if content[: len(schema.MAGIC)] != schema.MAGIC:
        # A file truncated inside the magic is still a profile.
        if schema.MAGIC.startswith(content):
            raise _Walk(content, source).damage(len(content), "the file ends inside the header")
        raise ProfileDataError(f"cannot read '{source}': not a profile; {_hint(source)}")
    walk = _Walk(content, source)
    fields = walk.fields()
    minor = _checked_version(fields, source)
    span = fields.get(_NUMBERS["body"])
    if not isinstance(span, slice):
        raise walk.damage(len(content), "field 'body' is missing")
    body = content[span]
    found, expected = zlib.crc32(body), fields.get(_NUMBERS["body_crc32"], 0)
    if found != expected:
        declared = f"{expected:#010x}" if isinstance(expected, int) else "none"
        raise walk.damage(
            span.start,
            f"the checksum of field 'body' is {found:#010x}, the file declares {declared}",
        )
    return Body(body, is_newer=minor > schema.MINOR)


def _hint(source: str) -> str:
    """Return what to do with a file that is not a profile."""
    if source.endswith((".py", ".pyc")):
        return f"to profile a script: deepcontext profile {shlex.quote(source)}"
    return "name a file written by 'deepcontext profile' or deepcontext.start() (*.dcprof)"


def _checked_version(fields: dict[int, int | slice], source: str) -> int:
    major, minor = (fields.get(_NUMBERS[name], 0) for name in ("major", "minor"))
    if major == schema.MAJOR and isinstance(minor, int):
        return minor
    if isinstance(major, int) and isinstance(minor, int) and major > schema.MAJOR:
        raise ProfileDataError(
            f"cannot read '{source}': format version {major}.{minor}, this build reads up to "
            f"{schema.MAJOR}.x; upgrade deepcontext"
        )
    raise ProfileDataError(
        f"cannot read '{source}': field 'major' or 'minor' holds no format version; the file is "
        "damaged"
    )


@dataclass
class _Walk:
    """A reading position in protobuf's wire format. Source: protobuf.dev, "Encoding"."""

    content: bytes
    source: str
    offset: int = field(default=0)

    def fields(self) -> dict[int, int | slice]:
        """Return the last value of each field: a number, or the slice of its bytes."""
        fields: dict[int, int | slice] = {}
        while self.offset < len(self.content):
            start = self.offset
            tag = self._varint()
            fields[tag >> 3] = self._value(tag & 7, start)
        return fields

    def damage(self, offset: int, what: str) -> ProfileDataError:
        """Return the error for damage `what` at `offset`."""
        return ProfileDataError(
            f"cannot read '{self.source}': the file is damaged or cut short at offset {offset} of "
            f"{len(self.content)} bytes: {what}; record the profile again, or copy the file again"
        )

    def _value(self, wire_type: int, start: int) -> int | slice:
        if wire_type == _VARINT:
            return self._varint()
        if wire_type == _BYTES:
            size = self._varint()
        elif wire_type in _FIXED_SIZES:
            size = _FIXED_SIZES[wire_type]
        else:
            raise self.damage(start, f"a field has the unknown wire type {wire_type}")
        left = len(self.content) - self.offset
        if size > left:
            raise self.damage(start, f"a field declares {size} bytes, {left} are left")
        span = slice(self.offset, self.offset + size)
        self.offset = span.stop
        return span

    def _varint(self) -> int:
        start, value = self.offset, 0
        for position, byte in enumerate(self.content[start : start + _MAX_VARINT_SIZE]):
            value |= (byte & 0x7F) << (7 * position)
            if byte < 0x80:  # noqa: PLR2004  the top bit marks that more bytes follow
                self.offset = start + position + 1
                return value
        raise self.damage(start, "a number does not end")
