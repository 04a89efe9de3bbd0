"""What files and functions of libraries do for their caller: saving, printing, or their own work.

Data about names. Does not judge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.profiler.model.package import Origin, package_of

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from deepcontext.profiler.model.profile_model import ProfileModel as Profile

_SAVING: Final = "torch/serialization.py"
# A framework whose functions do what their caller asks for: told where this can be cheaper.
_ARRAYS: Final = "numpy"
# Methods of tensors that make texts: dozens of small operators and Python between them.
_PRINTING: Final = frozenset({"Tensor.__format__", "Tensor.__repr__"})
_LOGGING: Final = ("torch/utils/tensorboard/", "/tensorboardX/", "/wandb/", "/mlflow/", "/logging/")
# Flatten the arguments of a jitted function in Python, in each call.
_FLATTENING: Final = frozenset({"jax", "flax", "haiku", "dm_haiku", "equinox", "optax"})
_WRITING: Final = frozenset({"json", "pickle", "csv", "yaml", "pathlib", "zipfile", "shutil"})


def frames(profile: Profile, accepts: Callable[[Frame], bool]) -> npt.NDArray[np.bool_]:
    """Return which frames are accepted, shape (frames,); asked once for each function of a file."""

    def compute() -> npt.NDArray[np.bool_]:
        table = profile.frames
        function = (table.file.astype(np.int64) << 32 | table.name) << 4 | table.kind
        _, first, number = np.unique(function, return_index=True, return_inverse=True)
        answers = np.array([accepts(table[each]) for each in first.tolist()], np.bool_)
        return answers[number]

    return profile.once((frames, accepts), compute)


def of_files(profile: Profile, accepts: Callable[[str], bool]) -> npt.NDArray[np.bool_]:
    """Return which frames' files are accepted, shape (frames,); asked once for each file, with "/" in it."""

    def compute() -> npt.NDArray[np.bool_]:
        files, number = np.unique(profile.frames.file, return_inverse=True)
        strings = profile.frames.strings
        answers = [accepts(strings[int(each)].replace("\\", "/")) for each in files.tolist()]
        return np.array(answers, np.bool_)[number]

    return profile.once((of_files, accepts), compute)


def is_saving(file: str) -> bool:
    """Return whether a file is the framework's that saves and loads tensors."""
    return file.replace("\\", "/").endswith(_SAVING)


def prints(frame: Frame) -> bool:
    """Return whether a function makes a text of a tensor."""
    return frame.name in _PRINTING


def writes(frame: Frame) -> bool:
    """Return whether a function's file reads or writes files, or logs."""
    is_log = any(part in frame.file for part in _LOGGING)
    return is_saving(frame.file) or is_log or package_of(frame.file).name in _WRITING


def flattens(package: str) -> bool:
    """Return whether a package flattens the arguments of each call."""
    return package in _FLATTENING


def is_of_arrays(package: str) -> bool:
    """Return whether a package computes with arrays for its caller."""
    return package == _ARRAYS


def is_framework(frame: Frame) -> bool:
    """Return whether a frame is a framework's, whose time no line of the program explains."""
    if frame.kind is FrameKind.MODULE:
        return True
    if prints(frame) or is_saving(frame.file) or any(part in frame.file for part in _LOGGING):
        return False
    package = package_of(frame.file)
    return package.name != _ARRAYS and package.origin in {Origin.FRAMEWORK, Origin.GENERATED}
