"""The profile of a child in the run directory of its job, which may be removed or replaced under it.

Invariant: nothing of this file reaches a stream of the child, which may be a daemon, and no file is
added to a run directory from which the child's profile was removed.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from deepcontext.errors import DeepContextError
from deepcontext.profiler.format import run_directory
from deepcontext.profiler.format.own_os import os, read_file
from deepcontext.profiler.recording.rank import current_rank, local_rank
from deepcontext.profiler.recording.session_file import SessionFile

if TYPE_CHECKING:
    from pathlib import Path

    from deepcontext.profiler.recording.rank import Rank
    from deepcontext.profiler.recording.session import Session

# Beginnings of the names that `multiprocessing`, `concurrent.futures` and loky give to workers of a pool.
_POOL_NAMES: Final = ("ForkPoolWorker", "SpawnPoolWorker", "ForkServerPoolWorker", "LokyProcess")


class ChildFile(SessionFile):
    """A file that is named by the rank or role of its process as soon as one is known."""

    def __init__(self, run: Path, *, is_forked: bool) -> None:
        """Choose the path of this process's profile in the run directory `run`."""
        super().__init__(run_directory.profile_path(run))
        self._run = run
        self._session: Session | None = None
        # A child of a rank inherits the rank's variables.
        launched = None if is_forked else current_rank()
        self._is_launched = launched is not None and not _has_variable(launched.source)
        self._is_written = False
        self._is_told = False

    def follow(self, session: Session) -> None:
        """Ask a session for the rank of its process."""
        self._session = session

    def make_way(self) -> None:
        """Rename the file if the rank or role of the process has become known."""
        role = self._role()
        path = run_directory.named(self.path, role)
        if path == self.path:
            return
        if self._is_written:
            try:
                os.rename(self.path, path)
            except OSError:  # the next `write` finds that the run directory was removed
                return
        self.path = self._wanted = path

    def write(self, content: bytes) -> None:
        """Write the profile, unless it was removed; the run directory keeps why this failed."""
        if self._is_written and not os.access(self.path, os.F_OK):
            return
        try:
            super().write(content)
        except (OSError, DeepContextError) as error:
            if not self._is_told:
                run_directory.note_failure(self._run, f"{type(error).__name__}: {error}")
            self._is_told = True
        else:
            self._is_written = True

    def _role(self) -> str:
        rank = current_rank() if self._session is None else self._session.rank()
        if rank is not None and (self._is_launched or _is_of_framework(rank)):
            return run_directory.rank_name(rank.number, local_rank().attempt)
        loader = sys.modules.get("torch.utils.data._utils.worker")
        if getattr(loader, "_worker_info", None) is not None:
            return "loader"
        process = sys.modules.get("multiprocessing.process")
        current = getattr(process, "current_process", None)
        return "pool" if current and current().name.startswith(_POOL_NAMES) else ""


def _is_of_framework(rank: Rank) -> bool:
    return rank.source not in os.environ


def _has_variable(name: str) -> bool:
    """Return whether the parent has a variable in its environment."""
    try:
        return f"\0{name}=".encode() in b"\0" + read_file(f"/proc/{os.getppid()}/environ")
    except OSError:  # of another user, such as Slurm's
        return False
