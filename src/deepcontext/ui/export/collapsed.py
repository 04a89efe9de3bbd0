"""Collapsed stacks: one line per call path, `outer;inner;leaf 123`; nodes with equal labels are summed.

Source: Brendan Gregg, FlameGraph, stackcollapse-*.pl. The format cannot hold phases.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final

from deepcontext.profiler.format.writing import HEAD_BYTES, FileKind
from deepcontext.ui.export.formats import Format
from deepcontext.ui.format import frame_label

if TYPE_CHECKING:
    from deepcontext.ui.export.stacks import Stacks

_LINE: Final = re.compile(rb".+ \d+")
_SUFFIX: Final = ".folded"
# The characters that separate frames and lines in this format.
_RESERVED = str.maketrans({";": ",", "\n": " ", "\r": " "})


def encode(stacks: Stacks) -> bytes:
    """Return the lines for the first measure, in the order of the tree."""
    frames = stacks.profile.frames
    labels = [
        frame_label(frames[index]).translate(_RESERVED).strip() for index in range(len(frames))
    ]
    values = stacks.values[0].tolist()
    lines: Counter[str] = Counter()
    for node, path in stacks.paths():
        lines[";".join(labels[frame] for frame in path) or "(root)"] += values[node]
    text = "".join(f"{line} {value}\n" for line, value in lines.items())
    return text.encode("utf-8", "replace")


def _matches(head: bytes, name: str) -> bool:
    """Whether a file holds only stacks; the format has no room for a mark of deepcontext."""
    if not name.endswith(_SUFFIX):
        return False
    lines = head.split(b"\n")
    last = lines.pop()  # empty at the end of the file, else a partial line
    is_whole = not last or len(head) == HEAD_BYTES
    return is_whole and bool(lines) and all(map(_LINE.fullmatch, lines))


FORMAT: Final = Format(
    encode,
    _SUFFIX,
    FileKind("a file of collapsed stacks (*.folded)", _matches),
    opened_by="flamegraph.pl {} > flame.svg",
    holds_many=False,
)
