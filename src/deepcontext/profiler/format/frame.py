"""Frames of a calling context tree: each is one place on a stack.

Does not hold the tree (`tree.py`). The integer values are part of the file format and of the native
core: they never change meaning, and new kinds are added at the end.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final

# Name of the frame of a process's first thread.
MAIN_THREAD: Final = "MainThread"


class Labelled(enum.IntEnum):
    """Numbers with names that views show."""

    @property
    def label(self) -> str:
        """Lower-case name used in JSON, queries and views."""
        return self.name.lower()


class FrameKind(Labelled):
    """Layer of the program a frame belongs to; the order is that of `native/core/frame_kind.h`."""

    ROOT = 0
    THREAD = 1
    PYTHON = 2
    SCOPE = 3
    MODULE = 4
    OPERATOR = 5
    PHASE = 6
    NATIVE = 7
    GPU_API = 8
    KERNEL = 9
    COPY = 10
    GRAPH = 11
    STALL = 12
    HLO = 13
    MARKER = 14
    RANK = 15


class Phase(Labelled):
    """What an operator works for; stored at a node, never as text in a name."""

    NONE = 0
    FORWARD = 1
    BACKWARD = 2
    RECOMPUTE = 3
    OPTIMIZER = 4
    DATA_LOADING = 5
    OTHER = 6


@dataclass(frozen=True, slots=True)
class Frame:
    """One place on a stack.

    Attributes:
        kind: layer of the program.
        name: function, module (``Linear 'encoder.fc1'``), operator or kernel name.
        file: absolute path of the source file, for native code of the library; "" for none.
        line: 1-based source line, 0 for none; for a rank its number, from 0.
    """

    kind: FrameKind
    name: str
    file: str = ""
    line: int = 0

    def __str__(self) -> str:
        """Return the frame as views print it: ``name file:line``; for native code ``name file``."""
        if not self.file:
            return self.name
        if not self.line:
            return f"{self.name} {self.file}"
        return f"{self.name} {self.file}:{self.line}"
