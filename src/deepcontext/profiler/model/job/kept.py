"""Partial results in a folder, so that an interrupted merge can continue.

A file is one task's result, an ordinary profile of joined ranks. Its name is a hash of the files that
were read (name, size, time of the last change), so that a result of other files is never used.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from deepcontext.errors import DeepContextError
from deepcontext.profiler.format.writing import PROFILE, write
from deepcontext.profiler.model.job.artifact import profile_of, read_part
from deepcontext.profiler.model.job.loading import Refused, load

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepcontext.profiler.model.job.part import Part
    from deepcontext.profiler.model.profile import Profile

_RULES = b"3"  # version of the rules of joining; other rules need other results


def path_of(keep: str, names: Sequence[str], folder: str, how: str) -> Path | None:
    """Return the file of a partial result, None where a file cannot be found.

    Args:
        keep: folder of the partial results.
        names: files of the ranks.
        folder: of relative names.
        how: what else the result depends on.
    """
    key = hashlib.blake2b(_RULES + how.encode(), digest_size=16)
    try:
        for name in names:
            status = Path(folder, name).stat()
            key.update(
                f"{name}\0{status.st_size}\0{status.st_mtime_ns}\0".encode("utf-8", "replace")
            )
    except (OSError, ValueError):
        return None
    return Path(folder, keep, f"{key.hexdigest()}.dcprof")


def read(path: Path) -> tuple[Profile, Part] | None:
    """Return a partial result, and its profile; None if there is none that can be read."""
    if not path.is_file():
        return None
    profile = load(str(path))
    if isinstance(profile, Refused):
        return None
    try:
        return profile, read_part(profile)
    except DeepContextError:
        return None


def save(path: Path, part: Part) -> None:
    """Write a partial result.

    Raises:
        UserError: the folder may not be written to.
        EnvironmentProblem: the machine failed to write.
    """
    write(profile_of(part).to_bytes(), path, PROFILE)
