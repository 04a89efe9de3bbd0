"""The section `source_text` of a profile: the text around lines of the user's code that occur in its tree.

JSON, compressed with zlib:

    {"version": 1, "files": {FILE: {"length": LINES, "parts": [[FIRST, [TEXT, ...]], ...]}, ...}}

    FILE    as the frames of the profile name it
    LINES   lines of the whole file
    FIRST   number of the first line of a part, from 1
    TEXT    a line without its end, cut after `LONGEST_LINE` characters

Parts ascend and do not touch. Does not read files (`recording/source_text.py`, `model/source.py`), but says
what a line of a file is. Invariant: any bytes give either the texts or a `ProfileDataError`. Standard library
only, because the profiled program writes the section.
"""

from __future__ import annotations

import codecs
import json
import re
import sys
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from deepcontext.errors import ProfileDataError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

SECTION: Final = "source_text"
VERSION: Final = 1
# Lines above and below a line that occurs in the tree: as many as `explain` shows.
AROUND: Final = 4
LONGEST_LINE: Final = 400  # characters, as a page shows
MOST_LINES: Final = 2_000  # of a file
MOST_BYTES: Final = 1 << 20  # of all text, before compression
# Larger files are generated, or data.
MOST_FILE_BYTES: Final = 2 << 20
# JSON writes six characters for one of two bytes, in a job with names of files.
_MOST_INFLATED: Final = 16 * MOST_BYTES
_TYPED_FIELDS: Final = 4  # of an entry of linecache; an entry of a loader has 1
# Source: PEP 263.
_DECLARED: Final = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
# Those that Python decodes without importing a codec, which an operation of the profiler must not do.
_BUILT_IN: Final = frozenset({"ascii", "latin_1", "iso_8859_1", "latin1", "utf_8", "utf8"})


@dataclass(frozen=True, slots=True)
class FileText:
    """Lines of a file.

    Attributes:
        length: lines of the whole file.
        lines: text by number, from 1.
    """

    length: int
    lines: Mapping[int, str]


def split_lines(text: str) -> list[str]:
    """Return the lines of a text as Python counts them, without their ends."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return lines if lines[-1] else lines[:-1]


def typed_lines(file: str) -> list[str]:
    """Return the lines of code that was never in a file: a notebook's cell, a line at a prompt.

    They are known in the process that runs it, where `linecache` has them.
    """
    cache: Any = getattr(sys.modules.get("linecache"), "cache", None)
    entry = cache.get(file) if isinstance(cache, dict) else None
    # Entries of files, including deleted files, carry a modification time.
    if not isinstance(entry, tuple) or len(entry) != _TYPED_FIELDS or entry[1] is not None:
        return []
    lines: Any = entry[2]
    if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
        return []
    return split_lines("".join(lines))


def decoded(content: bytes) -> str | None:
    """Return the text of a source file, None for a file that is no text.

    Bytes that its encoding does not know, and encodings that this process has not loaded, give replacement
    characters.
    """
    if b"\0" in content:
        return None
    content = content.removeprefix(codecs.BOM_UTF8)
    for line in content.split(b"\n", 2)[:2]:
        if found := _DECLARED.match(line):
            name = found[1].decode("ascii", "replace").lower().replace("-", "_")
            if name in _BUILT_IN or f"encodings.{name}" in sys.modules:
                return content.decode(name, "replace")
        if not line.lstrip().startswith(b"#"):
            break
    return content.decode("utf-8", "replace")


def around(lines: Sequence[str], wanted: Iterable[int], reach: int = AROUND) -> FileText:
    """Return the given lines of a file with those around them, in at most `MOST_LINES` lines.

    Of too many, the lines around are left out, and then the last lines.

    Args:
        lines: all lines of the file.
        wanted: numbers of lines, from 1; those past the end are ignored.
        reach: how many lines above and below each line.
    """
    numbers = sorted(line for line in set(wanted) if 0 < line <= len(lines))
    kept = {
        each
        for line in numbers
        for each in range(max(line - reach, 1), min(line + reach, len(lines)) + 1)
    }
    chosen = sorted(kept) if len(kept) <= MOST_LINES else numbers[:MOST_LINES]
    return FileText(len(lines), {line: lines[line - 1][:LONGEST_LINE] for line in chosen})


def bounded(files: Mapping[str, FileText]) -> dict[str, FileText]:
    """Return the first files by name whose text takes at most `MOST_BYTES` together."""
    kept: dict[str, FileText] = {}
    left = MOST_BYTES
    for name, text in sorted(files.items()):
        size = sum(len(line.encode("utf-8", "replace")) for line in text.lines.values())
        if size <= left:
            kept[name] = text
            left -= size
    return kept


def encode(files: Mapping[str, FileText]) -> bytes:
    """Return the payload of the section; the same texts always give the same bytes."""
    content = {
        "version": VERSION,
        "files": {
            name: {"length": text.length, "parts": _parts(text.lines)}
            for name, text in sorted(files.items())
        },
    }
    return zlib.compress(json.dumps(content, separators=(",", ":")).encode(), 6)


def decode(payload: bytes) -> dict[str, FileText]:
    """Return the texts by file; none of a newer version.

    Raises:
        ProfileDataError: the payload is damaged.
    """
    try:
        content = json.loads(_inflated(payload))
        if content["version"] > VERSION:
            return {}
        return {
            str(name): FileText(int(file["length"]), dict(_numbered(file["parts"])))
            for name, file in content["files"].items()
        }
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, zlib.error) as error:
        raise ProfileDataError(
            f"cannot read section '{SECTION}': {type(error).__name__}: {error}"
        ) from error


def joined(payloads: Iterable[bytes]) -> bytes:
    """Return the text of several processes; associative and commutative.

    Where processes have different texts of a line, the alphabetically first is kept.

    Raises:
        ProfileDataError: a payload is damaged.
    """
    lengths: dict[str, int] = {}
    lines: dict[str, dict[int, str]] = {}
    # Processes of one program have mostly the same.
    for payload in sorted(set(payloads)):
        for name, text in decode(payload).items():
            lengths[name] = max(text.length, lengths.get(name, 0))
            known = lines.setdefault(name, {})
            for line, found in text.lines.items():
                known[line] = min(found, known.get(line, found))
    return encode({name: FileText(lengths[name], lines[name]) for name in lines})


def of_files(payload: bytes, names: Iterable[str]) -> bytes:
    """Return the payload with the text of these files alone, within the limit of bytes.

    Raises:
        ProfileDataError: the payload is damaged.
    """
    wanted = set(names)
    return encode(bounded({k: v for k, v in decode(payload).items() if k in wanted}))


def _parts(lines: Mapping[int, str]) -> list[tuple[int, list[str]]]:
    parts: list[tuple[int, list[str]]] = []
    for line in sorted(lines):
        if not parts or parts[-1][0] + len(parts[-1][1]) != line:
            parts.append((line, []))
        parts[-1][1].append(lines[line])
    return parts


def _inflated(payload: bytes) -> bytes:
    inflater = zlib.decompressobj()
    text = inflater.decompress(payload, _MOST_INFLATED)
    if not inflater.eof:
        raise ValueError(f"it does not end within {_MOST_INFLATED} bytes")
    return text


def _numbered(parts: Any) -> Iterable[tuple[int, str]]:
    for first, lines in parts:
        for at, line in enumerate(lines):
            yield int(first) + at, str(line)
