"""The distinct frames of a profile, as columns over a table of strings.

Does not know where in the tree a frame occurs (`tree.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.profiler.format.user_code import is_user_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt


# The file of `python -c`, and of functions that a library has generated (Triton's launchers, dataclasses).
_GENERATED: Final = "<string>"
# Modules of the interpreter that have no file.
_FROZEN: Final = "<frozen "
_BODY: Final = "<module>"
# A call of the class would search for each.
_KINDS: Final = {int(kind): kind for kind in FrameKind}


@dataclass(frozen=True, slots=True, eq=False)
class FrameTable:
    """Columns of frames, one row a distinct frame, all of shape (frames,).

    Attributes:
        kind: `FrameKind`, uint8.
        name: index into `strings`, uint32.
        file: index into `strings`, uint32; the string is "" where the frame has no file.
        line: 1-based source line, uint32; 0 where the frame has none; for a rank frame its number.
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
            kind=_KINDS[int(self.kind[index])],
            name=self.strings[int(self.name[index])],
            file=self.strings[int(self.file[index])],
            line=int(self.line[index]),
        )

    def __iter__(self) -> Iterator[Frame]:
        return (self[index] for index in range(len(self)))

    def is_user_code(self) -> npt.NDArray[np.bool_]:
        """Return whether each frame is a Python frame of the user's code, shape (frames,).

        Code from a string is the user's where the user's code runs it, which only a tree tells: see
        `ProfileModel.is_user_code`.
        """
        is_python = self.kind == FrameKind.PYTHON
        user_files = [
            file
            for file in map(int, np.unique(self.file[is_python]))
            if is_user_file(self.strings[file]) and self.strings[file] != _GENERATED
        ]
        return np.asarray(is_python & np.isin(self.file, user_files))

    def is_from_string(self) -> npt.NDArray[np.bool_]:
        """Return whether each frame is a Python frame of code compiled from a string, shape (frames,)."""
        named = [
            number
            for number, text in enumerate(self.strings)
            if text.startswith("<") and not text.startswith(_FROZEN)
        ]
        return np.asarray((self.kind == FrameKind.PYTHON) & np.isin(self.file, named))

    def is_passing_on(self) -> npt.NDArray[np.bool_]:
        """Return which frames are modes of PyTorch (`torch.set_default_device`), which pass each call on."""
        names = [name.endswith("__torch_function__") for name in self.strings]
        return np.asarray((self.kind == FrameKind.PYTHON) & np.array(names, np.bool_)[self.name])

    def is_module_body(self) -> npt.NDArray[np.bool_]:
        """Return whether each frame is one of code outside all functions, shape (frames,)."""
        if _BODY not in self.strings:
            return np.zeros(len(self), np.bool_)
        is_python = self.kind == FrameKind.PYTHON
        return np.asarray(is_python & (self.name == self.strings.index(_BODY)))

    def source_line(self) -> npt.NDArray[np.int64]:
        """Return a number for the file and line of each frame, shape (frames,), int64."""
        return (self.file.astype(np.int64) << 32) | self.line
