"""The file that a session writes, once or repeatedly.

Does not know the content. Invariant: a foreign file that appears under the session's name during
the run is kept; the profile is then written to another name in the same folder, and `notes` says
so.
"""

from __future__ import annotations

import contextlib
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Final

from deepcontext.errors import UserError
from deepcontext.profiler.format import writing
from deepcontext.profiler.format.own_os import os

if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST_NAMES: Final = 1000


class SessionFile:
    """Where a session writes its profile.

    Args:
        path: the file that was requested.
        force: replace a file even if it is not a profile.

    Raises:
        UserError: no profile may or can be written there.
        EnvironmentProblem: the machine fails to write there.
    """

    def __init__(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        check(path, force=force)
        self.path = Path(path).absolute()
        self._wanted = self.path
        self._force = force
        self._reason = ""  # why the profile is not in the requested file
        # On a device snapshots would follow one another, so only the last profile is written.
        self.takes_snapshots = not self.path.exists() or self.path.is_file()

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know about the file."""
        if self.path == self._wanted:
            return ()
        note = (
            f"'{self._wanted.name}' was not replaced: {self._reason}; the profile was written "
            f"to '{self.path.name}' in the same folder"
        )
        return (note,)

    def make_way(self) -> None:
        """Choose another name if the file at the current path may not be replaced."""
        try:
            check(self.path, force=self._force)
        except writing.ForeignFileError as error:
            self._reason = error.reason or str(error)
            self.path = next(path for path in self._others() if not os.path.lexists(path))

    def write(self, content: bytes) -> None:
        """Write the profile, after `make_way`.

        Raises:
            UserError: the folder is gone, or may not be written to any more.
            EnvironmentProblem: the machine failed to write; an older file is then still there.
        """
        try:
            writing.write(content, self.path, writing.PROFILE, force=self._force)
        except writing.ForeignFileError:  # it appeared after `make_way`
            self.make_way()
            writing.write(content, self.path, writing.PROFILE, force=self._force)

    def remove(self) -> None:
        """Remove the profile, unless another file has taken its place."""
        target = Path(os.path.realpath(self.path))
        with contextlib.suppress(OSError):
            with target.open("rb") as file:
                is_profile = writing.PROFILE.matches(file.read(writing.HEAD_BYTES), target.name)
            if is_profile and self.takes_snapshots:
                target.unlink()

    def _others(self) -> Iterator[Path]:
        wanted = self._wanted
        for number in range(2, _MOST_NAMES):
            yield wanted.with_name(f"{wanted.stem}.{number}{wanted.suffix}")
        raise UserError(
            f"cannot write '{wanted}': this name and all numbered names exist; choose another name"
        )


def check(path: str | os.PathLike[str], *, force: bool = False) -> None:
    """Check, before anything runs, that a session may write its profile to `path`.

    Raises:
        UserError: it may not or cannot be written there.
        EnvironmentProblem: the machine fails to write there.
    """
    name = os.fsdecode(path)
    if writing.descriptor_of(path) is not None or _is_pipe(name):
        raise writing.ForeignFileError(
            f"cannot write the profile to '{name}': it is rewritten while the program runs, "
            "which a pipe or a stream does not allow; name a file"
        )
    writing.check(path, writing.PROFILE, force=force)


def _is_pipe(name: str) -> bool:
    try:
        return stat.S_ISFIFO(os.stat(name).st_mode)
    except (OSError, ValueError):
        return False  # `writing.check` reports all other errors
