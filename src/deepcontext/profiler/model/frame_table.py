"""The distinct frames of a profile, as columns over a table of strings.

Does not know where in the tree a frame occurs (`tree.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from deepcontext.profiler.format.frame import Frame, FrameKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np
    import numpy.typing as npt


@dataclass(frozen=True, slots=True, eq=False)
class FrameTable:
    """Columns of frames, one row a distinct frame, all of shape (frames,).

    Attributes:
        kind: `FrameKind`, uint8.
        name: index into `strings`, uint32.
        file: index into `strings`, uint32; the string is "" where the frame has no file.
        line: 1-based source line, uint32; 0 where the frame has none; of a rank its number.
        strings: each string once.
    """

    kind: npt.NDArray[np.uint8]
    name: npt.NDArray[np.uint32]
    file: npt.NDArray[np.uint32]
    line: npt.NDArray[np.uint32]
    strings: Sequence[str]

    def __len__(self) -> int:
        return len(self.kind)

    def __getitem__(self, index: int) -> Frame:
        return Frame(
            kind=FrameKind(int(self.kind[index])),
            name=self.strings[int(self.name[index])],
            file=self.strings[int(self.file[index])],
            line=int(self.line[index]),
        )

    def __iter__(self) -> Iterator[Frame]:
        return (self[index] for index in range(len(self)))
