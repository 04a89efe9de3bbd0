"""A 64-bit key of each call path, the same in every process that has the path.

A key is a hash of content: kind, name, file, line and phase of the node, and the key of the path
above. Two paths may have one key by chance; `joining.py` compares what it joins. Does not join.
"""

from __future__ import annotations

import hashlib
import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.model.frame_table import FrameTable
from deepcontext.profiler.model.job.joined_file import joined_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

    from deepcontext.profiler.model.job.joined_file import Folders
    from deepcontext.profiler.model.tree import Tree

    Keys = npt.NDArray[np.uint64]

NO_PATH: Final = np.uint64(0)  # the key above the root
_KEY_SIZE: Final = 8
_ABOVE: Final = np.uint64(0x100000001B3)


@dataclass(frozen=True, slots=True)
class JoinedFrame:
    """A frame as ranks share it.

    Attributes:
        kind: layer of the program.
        name: the frame's name.
        file: name by which the file is compared (`joined_file`).
        line: 1-based source line, 0 for none.
        path: the file itself on one rank: the alphabetically first if there are several.
    """

    kind: int
    name: str
    file: str
    line: int
    path: str

    @property
    def content(self) -> tuple[int, str, str, int]:
        """What is equal on all ranks."""
        return self.kind, self.name, self.file, self.line


def joined_frames(frames: FrameTable, folders: Folders) -> list[JoinedFrame]:
    """Return each frame of a profile as ranks share it, in the order of the table."""
    strings = frames.strings
    files: dict[tuple[int, bool], str] = {}
    columns = (frames.kind, frames.name, frames.file, frames.line)
    rows: list[tuple[int, ...]] = list(zip(*(column.tolist() for column in columns), strict=True))
    found = []
    for kind, name, file, line in rows:
        place = (file, kind == FrameKind.NATIVE)
        if place not in files:
            files[place] = joined_file(strings[file], FrameKind(kind), folders)
        found.append(JoinedFrame(kind, strings[name], files[place], line, strings[file]))
    return found


def frame_table(frames: Sequence[JoinedFrame]) -> FrameTable:
    """Return frames as a table, with their files on one rank."""
    strings: dict[str, int] = {"": 0}
    name = [strings.setdefault(frame.name, len(strings)) for frame in frames]
    file = [strings.setdefault(frame.path, len(strings)) for frame in frames]
    return FrameTable(
        kind=np.array([frame.kind for frame in frames], np.uint8),
        name=np.array(name, np.uint32),
        file=np.array(file, np.uint32),
        line=np.array([frame.line for frame in frames], np.uint32),
        strings=tuple(strings),
    )


def frame_keys(frames: list[JoinedFrame]) -> Keys:
    """Return the key of each frame, shape (frames,), uint64."""
    texts: dict[str, int] = {}
    name = [texts.setdefault(frame.name, len(texts)) for frame in frames]
    file = [texts.setdefault(frame.file, len(texts)) for frame in frames]
    text = _text_keys(texts)
    numbers = np.array([frame.line << 8 | frame.kind for frame in frames], np.uint64)
    return _mixed(text[name] ^ _mixed(text[file] ^ _mixed(numbers)))


def path_keys(tree: Tree, frames: Keys) -> Keys:
    """Return the key of each node's path, shape (nodes,), uint64.

    Args:
        tree: the nodes.
        frames: key of each frame of the table.
    """
    own = _mixed(frames[tree.frame] ^ _mixed(tree.phase.astype(np.uint64)))
    keys = own.copy()
    order = np.argsort(tree.depth, kind="stable")
    ends = np.cumsum(np.bincount(tree.depth)).tolist()
    for start, end in itertools.pairwise(ends):
        nodes = order[start:end]
        keys[nodes] = _mixed(keys[tree.parent[nodes]] * _ABOVE ^ own[nodes])
    return keys


def _text_keys(texts: Iterable[str]) -> Keys:
    digests = (
        hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_KEY_SIZE).digest()
        for text in texts
    )
    return np.frombuffer(b"".join(digests), "<u8").astype(np.uint64)


def _mixed(values: Keys) -> Keys:
    """Return a bijection of the values that spreads every bit. Source: splitmix64, Vigna 2015."""
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
