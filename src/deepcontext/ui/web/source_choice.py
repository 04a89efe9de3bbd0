"""Which source text a one-file page holds.

A program imports far more files than it spends time in, so the text is chosen by measured value. Does
not change what is measured: the page shows the cost of every line, with or without its text.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.format.user_code import is_user_file
from deepcontext.profiler.model.grouping import sums, topmost
from deepcontext.profiler.summaries.groups import FrameGroups
from deepcontext.profiler.summaries.measures import summed_metrics
from deepcontext.profiler.summaries.setup_time import importing
from deepcontext.ui.web.answers import SourceText
from deepcontext.ui.web.json_text import to_json
from deepcontext.ui.web.source_text import AROUND, NO_TEXT, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deepcontext.profiler.model.profile import Profile

    Shares = dict[str, dict[int, float]]

_WHOLE: Final = "'deepcontext view' of the profile shows the whole text"
LEFT_OUT: Final = f"this page has no text of files whose lines cost little; {_WHOLE}"
IN_PART: Final = f"this page has only the text around costly lines; {_WHOLE}"
# The name of the entry for all files without an entry (`web/src/reader.ts`).
OTHERS: Final = ""
# Lines with a smaller share of each measure are not worth their text.
_LEAST_SHARE: Final = 0.001
_AROUND_LIBRARY: Final = 8
# Compressed columns take about 20 bytes a node.
_USER_BYTES_PER_NODE: Final = 8
_LIBRARY_BYTES_PER_NODE: Final = 4
_LEAST_USER_BYTES: Final = 16_000
_LEAST_LIBRARY_BYTES: Final = 8_000


def chosen_texts(profile: Profile, *, with_text: bool) -> dict[str, SourceText]:
    """Return the text of the files that matter, by path, and what to say about the other files.

    User files come whole, the costliest first, until their text is large compared with the profile;
    then only the text around their costly lines. Of libraries, only the text around costly lines comes.

    Args:
        profile: the profile.
        with_text: whether files may be read.
    """
    if not with_text:
        return {OTHERS: SourceText(NO_TEXT, 0, [])}
    shares = line_shares(profile)
    costliest = sorted(shares, key=lambda path: -max(shares[path].values()))
    user = [path for path in costliest if is_user_file(path)]
    libraries = [path for path in costliest if not is_user_file(path)]
    nodes = len(profile.tree)
    return {
        OTHERS: SourceText(LEFT_OUT, 0, []),
        **_within(
            max(_USER_BYTES_PER_NODE * nodes, _LEAST_USER_BYTES),
            ((path, _of_user(profile, path, shares[path])) for path in user),
        ),
        **_within(
            max(_LIBRARY_BYTES_PER_NODE * nodes, _LEAST_LIBRARY_BYTES),
            ((path, _around(profile, path, shares[path], _AROUND_LIBRARY)) for path in libraries),
        ),
    }


def line_shares(profile: Profile) -> Shares:
    """Return the largest share of each Python line in a measure's total, by file and line.

    Lines count with what they call. What runs while a library is imported does not count.
    """
    frames, tree = profile.frames, profile.tree
    is_line = (frames.kind == FrameKind.PYTHON) & (frames.line > 0)
    lines = FrameGroups.of_frames(is_line, frames.source_line())
    group = lines.of_frame[tree.frame]
    top = topmost(tree, group)
    is_imported = importing(profile)
    largest = np.zeros(len(lines.example))
    for metric in summed_metrics(profile):
        values = np.where(is_imported, 0, profile.exclusive(metric.name))
        total = int(values.sum())
        if total > 0:
            inclusive = sums(group[top], tree.inclusive(values)[top], len(largest))
            np.maximum(largest, inclusive / total, out=largest)
    shares: Shares = {}
    for frame, share in zip(lines.example.tolist(), largest.tolist(), strict=True):
        file = frames.strings[int(frames.file[frame])]
        shares.setdefault(file, {})[int(frames.line[frame])] = share
    return shares


def _within(
    most_bytes: int, files: Iterator[tuple[str, Iterator[SourceText]]]
) -> dict[str, SourceText]:
    """Return the first text of each file that fits into the rest of `most_bytes`, compressed."""
    chosen: dict[str, SourceText] = {}
    for path, texts in files:
        for text in texts:
            size = len(zlib.compress(to_json(text).encode()))
            if size <= most_bytes:
                chosen[path] = text
                most_bytes -= size
                break
    return chosen


def _of_user(profile: Profile, path: str, shares: dict[int, float]) -> Iterator[SourceText]:
    yield text_of(profile, path, sorted(shares))
    yield from _around(profile, path, shares, AROUND)


def _around(
    profile: Profile, path: str, shares: dict[int, float], around: int
) -> Iterator[SourceText]:
    costly = sorted(line for line, share in shares.items() if share >= _LEAST_SHARE)
    if costly:
        text = text_of(profile, path, costly, around)
        is_cut = _size(text) < _size(text_of(profile, path, sorted(shares)))
        note = "; ".join(filter(None, (text.note, IN_PART if is_cut else "")))
        yield SourceText(note, text.length, text.parts)


def _size(text: SourceText) -> int:
    return sum(len(part.lines) for part in text.parts)
