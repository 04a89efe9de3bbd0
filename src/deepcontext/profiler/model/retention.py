"""Which runs of a folder may go, so that continuous runs take bounded space.

Decides, and removes nothing. Invariant: a run of which this machine cannot tell that all its processes have
ended is kept, whatever its age.
"""

from __future__ import annotations

import json
import os
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from deepcontext.errors import DeepContextError
from deepcontext.profiler.format import host_folder, run_directory, schema
from deepcontext.profiler.model.profile import Profile
from deepcontext.profiler.model.still_running import is_running

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_PROFILE: Final = ".dcprof"
# A merge, or a copy, may be at work.
_SETTLED_S: Final = 900.0
_UNCLOSED: Final = "snapshot"
_RANKED: Final = re.compile(r"rank\d+.*")


@dataclass(frozen=True, slots=True)
class Stored:
    """A run directory, or the profile of a single process.

    Attributes:
        path: where it is.
        size_bytes: of all its files.
        written_s: when a file of it was last written, by the clock of the file system, since 1970.
        kept_because: why it may not be removed, "" if it may.
    """

    path: Path
    size_bytes: int
    written_s: float
    kept_because: str


def stored(folder: Path) -> tuple[Stored, ...]:
    """Return the runs in a folder, the newest first. Links are left out."""
    entries = (path for path in folder.iterdir() if not path.is_symlink())
    found = (look(path) for path in entries if _is_ours(path))
    return tuple(sorted(found, key=lambda each: (-each.written_s, each.path.name)))


def removable(
    runs: Sequence[Stored], *, older_than_s: float | None, beyond_bytes: int | None
) -> tuple[Stored, ...]:
    """Return what is to be removed, the oldest first.

    Args:
        runs: the newest first.
        older_than_s: remove what was last written longer ago; None for no limit.
        beyond_bytes: remove the oldest until all that is left takes no more; None for no limit.
    """
    now_s, total, found = time.time(), 0, []
    for run in runs:
        is_old = older_than_s is not None and now_s - run.written_s > older_than_s
        is_beyond = beyond_bytes is not None and total + run.size_bytes > beyond_bytes
        if not run.kept_because and (is_old or is_beyond):
            found.append(run)
        else:
            total += run.size_bytes
    return tuple(reversed(found))


def _is_ours(path: Path) -> bool:
    if path.is_dir():
        return run_directory.is_run(path)
    if path.suffix != _PROFILE or not path.is_file():  # to open a pipe would wait for its writer
        return False
    try:
        with path.open("rb") as file:
            return file.read(len(schema.MAGIC)) == schema.MAGIC
    except OSError:
        return False


def look(path: Path) -> Stored:
    """Return what is known of a run directory or profile now."""
    files = [path] if path.is_file() else [each for each in path.rglob("*") if each.is_file()]
    states = [each.stat() for each in files]
    written_s = max((state.st_mtime for state in states), default=path.stat().st_mtime)
    if time.time() - written_s < _SETTLED_S:
        reason = "was written in the last 15 minutes"
    else:
        reason = _reason_of_run(path) if path.is_dir() else _reason_of_profile(path)
    return Stored(path, sum(state.st_size for state in states), written_s, reason)


def _reason_of_run(run: Path) -> str:
    profiles = run_directory.profiles(run)
    if not profiles:
        return "has no profile, so that nothing is known of its processes"
    reasons = (*map(_reason_of_profile, profiles), _unwritten(run), _named_by_a_process(run))
    return next(filter(None, reasons), "")


def _reason_of_profile(path: Path) -> str:
    try:
        run = Profile.load(path).run
    except (DeepContextError, OSError):
        return f"{path.name} cannot be read"
    if run.exit_reason != _UNCLOSED:
        return ""
    match is_running(run):
        case True:
            return f"process {run.pid} is running"
        case None:
            return f"process {run.pid} may be running on {run.hostname or 'another machine'}"
        case False:
            return ""


def _unwritten(run: Path) -> str:
    """Return which rank has said that it will write a profile, and has not."""
    for state in run.glob(f"*/{run_directory.HOST_STATE}"):
        try:
            writers = json.loads(state.read_bytes())["writers"]
        except (OSError, ValueError, KeyError, TypeError):
            return f"{state} cannot be read"
        is_here = state.parent.name == run_directory.host_name()
        for name in (name for name in map(str, writers) if _RANKED.fullmatch(name)):
            if not (state.parent / f"{name}{_PROFILE}").is_file() and (
                not is_here or host_folder.is_running(name)
            ):
                return f"{name} has not written its profile"
    return ""


def _named_by_a_process(run: Path) -> str:
    """Return which process of this machine was started by the run, by its environment."""
    text = os.fsencode(os.path.realpath(run))
    for process, environment in _environments():
        if text in environment:
            return f"process {process} belongs to it"
    return ""


def _environments() -> Iterable[tuple[str, bytes]]:
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            yield path.parent.name, path.read_bytes()
        except OSError:  # of another user, or it has ended
            continue
