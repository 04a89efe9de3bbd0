"""A line of a program, as a row of a table names it. Does not know the frame's kind (`format/frame.py`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from deepcontext.profiler.format.frame import Frame


@dataclass(frozen=True, slots=True)
class Place:
    """A source line. What is known of it are fields of a class that inherits.

    Attributes:
        function: name of the function the line is in.
        file: source file; "" where it is not known.
        line: 1-based; 0 where it is not known.
    """

    function: str
    file: str
    line: int

    @classmethod
    def at(cls, frame: Frame, *facts: object) -> Self:
        """Return the line of a frame with the fields that a class adds, in their order."""
        return cls(frame.name, frame.file, frame.line, *facts)
