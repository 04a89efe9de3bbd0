"""The text of source lines: from the profile that names them, or else from the file on this machine.

A profile holds the text around lines of the user's code (`format/source_text.py`). A file is believed if it
was not changed after the program started, and has the text that the profile holds of it. Opens regular files
only.
"""

from __future__ import annotations

import functools
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from deepcontext.profiler.format import source_text
from deepcontext.profiler.format.source_text import (
    LONGEST_LINE,
    FileText,
    split_lines,
    typed_lines,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from deepcontext.profiler.model.profile_model import ProfileModel

CHANGED: Final = "the file was changed after the program started"
_MOST_BYTES: Final = 16 << 20


@dataclass(frozen=True, slots=True)
class KnownText:
    """What is known of the text of a file.

    Attributes:
        lines: text by number, from 1.
        length: lines of the whole file, 0 where unknown.
        note: why lines are missing, or may differ from the program's; "" for the file as the program ran it.
        is_certain: whether the lines are those that ran.
    """

    lines: Mapping[int, str]
    length: int
    note: str = ""
    is_certain: bool = True


def line_text(profile: ProfileModel, file: str, line: int) -> str:
    """Return the text of a source line without its indentation, or "" when it is unknown.

    Args:
        profile: the profile that names the line.
        file: the source file, as the profile names it.
        line: 1-based number.
    """
    own = held_text(profile).get(file)
    if own is not None and line in own.lines:
        return own.lines[line].strip()
    known = known_text(profile, file)
    return known.lines.get(line, "").strip() if known.is_certain else ""


def line_text_of_any(profiles: Iterable[ProfileModel], file: str, line: int) -> str:
    """Return the text of a line from the first profile that knows it, or ""; see `line_text`."""
    return next(filter(None, (line_text(each, file, line) for each in profiles)), "")


def lines_around(profile: ProfileModel, file: str, line: int, around: int) -> str:
    """Return a line of a source file with those around it, each with its number; "" when unknown.

    Args:
        profile: the profile that names the line.
        file: the source file, as the profile names it.
        line: 1-based number.
        around: lines above, and lines below.
    """
    if not line_text(profile, file, line):
        return ""
    lines = known_text(profile, file).lines
    numbers = [each for each in range(line - around, line + around + 1) if each in lines]
    return "\n".join(f"{number:>5} {lines[number].rstrip()}" for number in numbers)


def known_text(profile: ProfileModel, file: str) -> KnownText:
    """Return what is known of a file: the file itself if it is believed, else what the profile holds.

    Without text in the profile, a file that was changed is returned as one that is not certain.

    Args:
        profile: the profile that names the file.
        file: the source file, as the profile names it.
    """
    content, note = _on_this_machine(profile, file)
    own = held_text(profile).get(file)
    if own is None:
        numbered = dict(enumerate(content, 1))
        return KnownText(numbered, len(content), note, is_certain=not note)
    if not note and _agree(own, content):
        return KnownText(dict(enumerate(content, 1)), len(content))
    why = note or "the file on this machine has other text"
    return KnownText(
        own.lines, own.length, f"text around lines of the profile, which holds it: {why}"
    )


def held_text(profile: ProfileModel) -> Mapping[str, FileText]:
    """Return the text that a profile holds, by file.

    Raises:
        ProfileDataError: the section of the text is damaged.
    """

    def read() -> Mapping[str, FileText]:
        payload = profile.sections.get(source_text.SECTION)
        return {} if payload is None else source_text.decode(payload)

    return profile.once("source_text", read)


def _agree(own: FileText, content: Sequence[str]) -> bool:
    return own.length == len(content) and all(
        0 < line <= len(content) and content[line - 1][:LONGEST_LINE] == text
        for line, text in own.lines.items()
    )


def _on_this_machine(profile: ProfileModel, file: str) -> tuple[Sequence[str], str]:
    """Return the lines of a file, and why they are missing or may differ from the program's."""
    try:
        status = Path(file).stat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > _MOST_BYTES:
            return [], "the file is not source text"
        content = _content(file, status.st_mtime_ns, status.st_size)
    except (OSError, ValueError) as error:  # ValueError: a NUL character in the name
        if typed := typed_lines(file):
            return typed, ""
        reason = getattr(error, "strerror", None) or str(error)
        return [], f"the file cannot be read on this machine: {reason}"
    if content is None:
        return [], "the file is not source text"
    started_ns = (profile.whole or profile).run.start_unix_ns
    return content, CHANGED if started_ns and status.st_mtime_ns > started_ns else ""


@functools.lru_cache(maxsize=32)
def _content(file: str, changed_ns: int, size: int) -> Sequence[str] | None:  # noqa: ARG001  the file's version
    text = source_text.decoded(Path(file).read_bytes())
    return None if text is None else split_lines(text)
