"""Ranks of merged profiles of format 1.0, where each rank was a scope "rank N" below the root.

Merging put nothing else below the root, so no scope of a program is mistaken for a rank. Newer
profiles are not changed.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.profiler.format.frame import FrameKind

if TYPE_CHECKING:
    from deepcontext.profiler.model.frame_table import FrameTable
    from deepcontext.profiler.model.tree import Tree

_PREFIX: Final = "rank "
_MOST_DIGITS: Final = 9  # fits the column


def with_ranks(frames: FrameTable, tree: Tree) -> tuple[FrameTable, Tree]:
    """Return the frames and the tree of a merged profile with frames of kind rank."""
    old = [node for node in tree.children(0) if _is_old(frames, int(tree.frame[node]))]
    if not old:
        return frames, tree
    rows = tree.frame[old]
    # New rows, because a scope of the program may share the old row.
    frame_of = tree.frame.copy()
    frame_of[old] = len(frames) + np.arange(len(old))
    numbers = [int(frames[int(row)].name.removeprefix(_PREFIX)) for row in rows]
    table = dataclasses.replace(
        frames,
        kind=np.append(frames.kind, np.full(len(old), FrameKind.RANK, np.uint8)),
        name=np.append(frames.name, frames.name[rows]),
        file=np.append(frames.file, frames.file[rows]),
        line=np.append(frames.line, np.array(numbers, np.uint32)),
    )
    return table, dataclasses.replace(tree, frame=frame_of)


def _is_old(frames: FrameTable, row: int) -> bool:
    frame = frames[row]
    number = frame.name.removeprefix(_PREFIX)
    is_number = number.isascii() and number.isdecimal() and len(number) <= _MOST_DIGITS
    return frame.kind is FrameKind.SCOPE and frame.name.startswith(_PREFIX) and is_number
