"""The text of source files that a profile names; the page computes the costs of their lines.

`model/source.py` says where text comes from, `source_choice.py` what a one-file page holds. Invariant: no
request can make the server read any other file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.errors import QueryError
from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.format.source_text import LONGEST_LINE
from deepcontext.profiler.model.source import known_text
from deepcontext.ui.web.answers import SourceText, TextPart

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.model.source import KnownText

NO_TEXT: Final = "source text is left out because of --no-source"
# Of a longer file, only text around lines with a cost is sent.
_WHOLE_LINES: Final = 2_000
AROUND: Final = 30


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
    known = known_text(profile, path)
    return SourceText(known.note, known.length, _parts(known, lines, around))


def _parts(known: KnownText, lines: list[int], around: int | None) -> list[TextPart]:
    """Return all that is known; of a long text, or with `around`, only the text around given lines."""
    if not known.lines:
        return []
    shown = np.zeros(known.length, np.bool_)
    if around is None and len(known.lines) <= _WHOLE_LINES:
        shown[:] = True
    reach = AROUND if around is None else around
    for line in lines:
        shown[max(line - 1 - reach, 0) : line + reach] = True
    has_text = np.zeros(known.length, np.bool_)
    has_text[[line - 1 for line in known.lines]] = True
    shown &= has_text
    edges = np.flatnonzero(np.diff(np.concatenate([[0], shown.view(np.int8), [0]])))
    return [
        TextPart(
            int(first) + 1, [known.lines[line + 1][:LONGEST_LINE] for line in range(first, end)]
        )
        for first, end in zip(edges[::2], edges[1::2], strict=True)
    ]
