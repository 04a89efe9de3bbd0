"""Functions: frames that views merge, because they differ only in the line of the call.

A Python function that calls from two lines has two frames; a flame graph draws one box for the
function unless it separates the lines. Each frame of another kind is a function.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from deepcontext.profiler.format.frame import Frame, FrameKind, Phase
from deepcontext.profiler.views.layers import Layer, layer_of_frame

if TYPE_CHECKING:
    import numpy.typing as npt

    from deepcontext.profiler.model.frame_table import FrameTable
    from deepcontext.profiler.model.profile import Profile

    Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class FunctionTable:
    """Which frames form one function; columns of shape (functions,) unless stated otherwise.

    The last rows represent the phases of a program, which have no frame: a tree split by phase
    needs a node for each phase.

    Attributes:
        of_frame: function of each frame, shape (frames,), int64.
        example: the first frame of the function; `NO_FRAME` for the phases' rows.
        layer: `Layer`, uint8.
        is_library: whether the function is a Python function outside user code, bool.
        by_line: whether each line of a Python function is a separate function.
        table: the profile's frames.
    """

    of_frame: Ints
    example: Ints
    layer: npt.NDArray[np.uint8]
    is_library: npt.NDArray[np.bool_]
    by_line: bool
    table: FrameTable

    @classmethod
    def of_profile(cls, profile: Profile, *, by_line: bool) -> FunctionTable:
        """Make the table of a profile.

        Args:
            profile: profile with the frames.
            by_line: separate the lines of a Python function.
        """
        table = profile.frames
        columns: list[npt.NDArray[Any]] = [table.kind, table.name, table.file]
        if by_line:
            columns.append(table.line)
        _, first, inverse = np.unique(
            np.stack(columns).astype(np.int64), axis=1, return_index=True, return_inverse=True
        )
        # Numbered by first appearance, so that the numbers are stable and readable.
        order = np.argsort(first)
        number = np.empty(len(order), np.int64)
        number[order] = np.arange(len(order))
        example = first[order]
        is_library = (table.kind == FrameKind.PYTHON) & ~profile.frames.is_user_code()
        extra = len(Phase)
        return cls(
            of_frame=number[np.ravel(inverse)],
            example=np.append(example, np.full(extra, NO_FRAME)),
            layer=np.append(
                layer_of_frame(table.kind[example]), np.full(extra, Layer.SCOPE, np.uint8)
            ),
            is_library=np.append(is_library[example], np.zeros(extra, np.bool_)),
            by_line=by_line,
            table=table,
        )

    def __len__(self) -> int:
        return len(self.example)

    def frame(self, function: int) -> Frame:
        """Return the frame that represents a function; without a line where lines are merged."""
        example = int(self.example[function])
        if example == NO_FRAME:
            phase = Phase(function - len(self) + len(Phase))
            return Frame(FrameKind.PHASE, phase.label.replace("_", " "))
        frame = self.table[example]
        return frame if self.by_line else Frame(frame.kind, frame.name, frame.file)

    def of_phase(self, phase: int) -> int:
        """Return the function that represents a phase."""
        return len(self) - len(Phase) + phase


NO_FRAME = -1
