"""The text of source files that a profile names; the page computes the costs of their lines.

`source_choice.py` chooses what a one-file page holds. Invariant: no request can make the server read
any other file.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.errors import QueryError
from deepcontext.profiler.format.frame import FrameKind
from deepcontext.ui.web.answers import SourceText, TextPart

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

NO_TEXT: Final = "source text is left out because of --no-source"
# Of a longer file, only text around lines with a cost is sent.
_WHOLE_LINES: Final = 2_000
AROUND: Final = 30
_LONGEST_LINE: Final = 400
_MOST_BYTES: Final = 16 * 1024 * 1024


def source_text(profile: Profile, path: str, *, with_text: bool) -> SourceText:
    """Return the text of one file.

    Args:
        profile: the profile.
        path: a file, spelled exactly as in the profile.
        with_text: whether the file may be read.

    Raises:
        QueryError: the profile does not name this file.
    """
    named = named_lines(profile)
    if path not in named:
        raise QueryError("this profile names no such source file; open a file from the list")
    return text_of(profile, path, named[path]) if with_text else SourceText(NO_TEXT, 0, [])


def named_lines(profile: Profile) -> dict[str, list[int]]:
    """Return the Python files that a profile names, and the lines it names of them, ascending."""
    frames = profile.frames
    is_line = (frames.kind == FrameKind.PYTHON) & (frames.line > 0)
    named: set[tuple[int, int]] = set(
        zip(frames.file[is_line].tolist(), frames.line[is_line].tolist(), strict=True)
    )
    lines: dict[str, list[int]] = {}
    for file, line in sorted(named):
        lines.setdefault(frames.strings[file], []).append(line)
    return lines


def text_of(profile: Profile, path: str, lines: list[int], around: int | None = None) -> SourceText:
    """Return the text of a file.

    Args:
        profile: the profile that names the file.
        path: the file.
        lines: lines that the text must contain.
        around: how many lines before and after each of `lines` to return; None for the whole text, or
            much of a long text.
    """
    content, note = _read(path, profile)
    return SourceText(note, len(content), _parts(content, lines, around))


def _read(path: str, profile: Profile) -> tuple[list[str], str]:
    """Return the lines of a file, and why they are missing or may differ from the program's."""
    where = Path(path)
    try:
        status = where.stat()
        if not where.is_file() or status.st_size > _MOST_BYTES:
            return [], "the file is not source text"
        content = where.read_text("utf-8", "replace").splitlines()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        return [], f"the file cannot be read on this machine: {reason}"
    started = profile.run.start_unix_ns
    if started and status.st_mtime_ns > started:
        return content, "the file was changed after the program started: lines may have moved"
    return content, ""


def _parts(content: list[str], lines: list[int], around: int | None) -> list[TextPart]:
    """Return the whole text; of a long file, or with `around`, only the text around given lines."""
    if not content:
        return []
    shown = np.zeros(len(content), np.bool_)
    if around is None and len(content) <= _WHOLE_LINES:
        shown[:] = True
    reach = AROUND if around is None else around
    for line in lines:
        shown[max(line - 1 - reach, 0) : line + reach] = True
    edges = np.flatnonzero(np.diff(np.concatenate([[0], shown.view(np.int8), [0]])))
    return [
        TextPart(int(first) + 1, [line[:_LONGEST_LINE] for line in content[first:end]])
        for first, end in zip(edges[::2], edges[1::2], strict=True)
    ]
