"""Files of a job that are read, and files that cannot be: one damaged file does not stop a merge."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from deepcontext.errors import ProfileDataError, UserError
from deepcontext.profiler.model.profile import Profile

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Refused:
    """A file that could not be read.

    Attributes:
        name: the file.
        reason: why, a whole sentence.
    """

    name: str
    reason: str


def load(name: str, folder: str = "") -> Profile | Refused:
    """Return the profile of a file, or why it cannot be read; `folder` resolves a relative name."""
    try:
        return Profile.load(Path(folder, name))
    except (ProfileDataError, UserError) as error:
        return Refused(name, str(error))


def nothing_left(files: int, refused: Sequence[Refused]) -> UserError:
    """Return the error for a merge in which no file can be read."""
    reason = f"; the first: {refused[0].reason}" if refused else ""
    return UserError(f"none of the {files} files could be merged{reason}")
