"""The events of a Chrome trace, decoded in batches, at constant memory.

JSON is cut between two events of the list `traceEvents`, and each batch is decoded as a list of its own. A
cut is right if and only if the batch decodes: a batch begins where an event begins, so text that is one whole
list of values ends where a value ends. Where a guessed cut is wrong, brackets are counted.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

import msgspec

from deepcontext.errors import ProfileDataError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

Value = int | float | str | None
_BATCH_BYTES: Final = 4 << 20
# No event is larger: the largest in the public traces that were read has 50 kB.
_LARGEST_VALUE_BYTES: Final = 64 << 20
# A string, the beginning of a string whose end is not here yet, or a bracket.
_TOKEN: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|"|[{}\[\]]', re.DOTALL)
_SPACE: Final = b" \t\r\n"
_SCALAR_END: Final = re.compile(rb"[,\]}\s]")
_BETWEEN: Final = re.compile(rb'\}\s*,\s*\{\s*"[^"\\]*"')
# Raw control characters occur in names (pytorch issue 130622); outside strings they are spaces anyway.
_CONTROL_TO_SPACE: Final = bytes.maketrans(bytes(range(32)), b" " * 32)


class Args(msgspec.Struct, gc=False):  # pyright: ignore[reportCallIssue, reportGeneralTypeIssues]
    """The arguments of an event that are read; others are skipped."""

    correlation: Value = None
    external: Value = msgspec.field(default=None, name="External id")
    sequence: Value = msgspec.field(default=None, name="Sequence number")
    forward_thread: Value = msgspec.field(default=None, name="Fwd thread id")
    device: Value = None
    stream: Value = None
    bytes: Value = None
    grid: msgspec.Raw = msgspec.Raw()
    block: msgspec.Raw = msgspec.Raw()
    registers: Value = msgspec.field(default=None, name="registers per thread")
    shared_memory: Value = msgspec.field(default=None, name="shared memory")
    sizes: msgspec.Raw = msgspec.field(default=msgspec.Raw(), name="Input Dims")
    types: msgspec.Raw = msgspec.field(default=msgspec.Raw(), name="Input type")
    allocated: Value = msgspec.field(default=None, name="Bytes")
    address: Value = msgspec.field(default=None, name="Addr")
    device_type: Value = msgspec.field(default=None, name="Device Type")
    device_id: Value = msgspec.field(default=None, name="Device Id")
    total_allocated: Value = msgspec.field(default=None, name="Total Allocated")
    total_reserved: Value = msgspec.field(default=None, name="Total Reserved")
    collective: Value = msgspec.field(default=None, name="Collective name")
    elements_in: Value = msgspec.field(default=None, name="In msg nelems")
    elements_out: Value = msgspec.field(default=None, name="Out msg nelems")
    element_type: Value = msgspec.field(default=None, name="dtype")
    group: Value = msgspec.field(default=None, name="Process Group Name")
    group_ranks: Value = msgspec.field(default=None, name="Process Group Ranks")
    name: Value = None


class Event(msgspec.Struct, gc=False):  # pyright: ignore[reportCallIssue, reportGeneralTypeIssues]
    """One event; `ts` and `dur` are in us."""

    ph: str = ""
    cat: str | None = None
    name: str | None = None
    pid: int | str | None = None
    tid: int | str | None = None
    ts: int | float | None = None
    dur: int | float | None = None
    id: int | str | None = None
    args: Args | None = None


_events: Final = msgspec.json.Decoder(list[Event])
_event: Final = msgspec.json.Decoder(Event)


class EventStream:
    """Iterates over batches of events, once.

    Args:
        chunks: the bytes of the file.
        path: the file, for messages.

    Attributes:
        facts: what stands beside the events, by key, known once the iteration has ended.
        odd: values in the list that are no event.
    """

    def __init__(self, chunks: Iterable[bytes], path: Path) -> None:
        self._chunks = iter(chunks)
        self._path = path
        self._text = b""
        self._at = 0
        self._before = 0  # bytes of the content before `_text`
        self._is_over = False
        self._has_control = False
        self.facts: dict[str, Any] = {}
        self.odd = 0

    def __iter__(self) -> Iterator[list[Event]]:
        first = self._next_character()
        if first == b"[":
            self._at += 1
            yield from self._list(is_top=True)
            return
        if first != b"{":
            raise self.wrong("neither a JSON object nor a JSON list")
        self._at += 1
        while (character := self._next_character()) != b"}":
            if character == b",":
                self._at += 1
                continue
            if character != b'"':
                raise self.wrong("expected a key of the outermost object")
            key = self._key()
            if key == "traceEvents" and self._next_character() == b"[":
                self._at += 1
                yield from self._list(is_top=False)
            else:
                self._keep(key, self._value())

    def _keep(self, key: str, value: bytes) -> None:
        self.facts[key] = self._lenient(value)

    def _key(self) -> str:
        key = self._lenient(self._value())
        if self._next_character() != b":":
            raise self.wrong("expected ':' after a key")
        self._at += 1
        return str(key)

    def _list(self, *, is_top: bool) -> Iterator[list[Event]]:
        separator = b""
        while True:
            character = self._next_character(may_end=is_top)
            if character == b"]" or (not character and is_top):
                self._at += 1
                return
            if character == b",":
                self._at += 1
                continue
            self._fill(_BATCH_BYTES)
            separator = separator or self._separator()
            cut = self._text.rfind(separator, self._at) if separator else -1
            batch = self._decoded(cut + 1) if cut > self._at else None
            if batch is None:
                batch = self._counted()
            yield batch

    def _separator(self) -> bytes:
        """Return the text between two events, with the first key of the second."""
        end = self._end_of_value(self._at)
        found = _BETWEEN.match(self._text, end - 1) if end > 0 else None
        return found[0] if found else b""

    def _decoded(self, cut: int) -> list[Event] | None:
        """Return the events up to a guessed cut; None where it is no cut, or a value is unusual."""
        text = b"".join((b"[", memoryview(self._text)[self._at : cut], b"]"))
        for _ in range(2):
            if self._has_control:
                text = text.translate(_CONTROL_TO_SPACE)
            try:
                batch = _events.decode(text)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                if self._has_control:
                    return None
                self._has_control = True
            else:
                self._at = cut
                return batch
        return None

    def _counted(self) -> list[Event]:
        """Return the events that are whole in the text, at least one, found by counting brackets."""
        end = self._end_of_value(self._at)
        while end < 0:
            if not self._grow():
                raise self._cut_off("inside an event")
            end = self._end_of_value(self._at)
        if end == self._at:
            raise self.wrong("expected an event")
        last = end
        while last - self._at < _BATCH_BYTES:
            place = last
            while self._text[place : place + 1] in _LIST_SPACE:
                place += 1
            end = self._end_of_value(place) if self._text[place : place + 1] == b"{" else -1
            if end < 0:
                break
            last = end
        text = b"[%b]" % self._text[self._at : last]
        self._at = last
        return [event for each in self._lenient(text) if (event := self._event(each)) is not None]

    def _event(self, value: object) -> Event | None:
        try:
            return _event.decode(json.dumps(value, ensure_ascii=False).encode(errors="replace"))
        except (ValueError, msgspec.DecodeError, RecursionError):
            self.odd += 1
            return None

    def _value(self) -> bytes:
        """Return the text of the value that begins here, and go behind it."""
        self._next_character()
        end = self._end_of_value(self._at)
        while end < 0:
            if not self._grow():
                raise self._cut_off("inside a value")
            end = self._end_of_value(self._at)
        text = self._text[self._at : end]
        self._at = end
        return text

    def _end_of_value(self, start: int) -> int:
        """Return where the value that begins at `start` ends in the text; -1 where it does not end there."""
        if self._text[start : start + 1] not in _CONTAINERS:
            found = _SCALAR_END.search(self._text, start)
            return found.start() if found else -1
        depth = 0
        for token in _TOKEN.finditer(self._text, start):
            first = token[0][:1]
            if first in _OPENING:
                depth += 1
            elif first in _CLOSING:
                depth -= 1
            elif len(token[0]) == 1:
                return -1  # the end of the string is not here yet
            if depth == 0:
                return token.end()
        return -1

    def _next_character(self, *, may_end: bool = False) -> bytes:
        while True:
            while self._at < len(self._text):
                character = self._text[self._at : self._at + 1]
                if character not in _SPACES:
                    return character
                self._at += 1
            if not self._grow():
                if may_end:
                    return b""
                raise self._cut_off("before the end of the outermost value")

    def _fill(self, size: int) -> None:
        """Have at least `size` bytes after the place, if there are as many."""
        have = len(self._text) - self._at
        if have >= size or self._is_over:
            return
        parts = [self._text[self._at :]]
        while have < size and (chunk := next(self._chunks, b"")):
            parts.append(chunk)
            have += len(chunk)
        self._is_over = have < size
        self._before += self._at
        self._text, self._at = b"".join(parts), 0

    def _grow(self) -> bool:
        """Read on; False at the end of the file."""
        have = len(self._text) - self._at
        if have > _LARGEST_VALUE_BYTES:
            raise self.wrong(
                f"one value is larger than {_LARGEST_VALUE_BYTES >> 20} MiB, and no event is"
            )
        self._fill(max(2 * have, _BATCH_BYTES))
        return len(self._text) - self._at > have

    def _lenient(self, text: bytes) -> Any:
        """Decode what a strict decoder refuses: control characters, NaN, broken Unicode."""
        try:
            return json.loads(
                text.decode("utf-8", "replace"), strict=False, parse_constant=lambda _: None
            )
        except (ValueError, RecursionError) as error:
            reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
            raise self.wrong(f"damaged JSON ({reason})") from error

    def wrong(self, what: str) -> ProfileDataError:
        """Return the error that says what is wrong, and where."""
        return ProfileDataError(
            f"cannot read '{self._path}': {what}, at byte {self._before + self._at:,} of the content; export "
            "the trace again"
        )

    def _cut_off(self, where: str) -> ProfileDataError:
        return ProfileDataError(
            f"cannot read '{self._path}': the JSON ends {where}, after {self._before + len(self._text):,} "
            "bytes: the file was cut off; copy it again, or record again"
        )


_SPACES: Final = frozenset(bytes((each,)) for each in _SPACE)
_LIST_SPACE: Final = _SPACES | {b","}
_CONTAINERS: Final = frozenset({b"{", b"[", b'"'})
_OPENING: Final = frozenset({b"{", b"["})
_CLOSING: Final = frozenset({b"}", b"]"})
