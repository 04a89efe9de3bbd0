"""The folder of one host in a run directory that all ranks of a job write without communicating.

    train.dcrun/HOST/
      job                                          JSON: which job, and names of its writers
      rank00003.attempt1-PID-START.dcprof          START in ms since 1970, hexadecimal

The first process of a job removes the profiles of an earlier job; `job` is also the lock for that.
Invariant: no profile of a process that runs, or of this job, is removed.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from deepcontext.errors import EnvironmentProblem, UserError
from deepcontext.profiler.format import run_directory
from deepcontext.profiler.format.write_errors import explained

try:
    import fcntl
except ImportError:  # Windows has none, and reads profiles with this file's neighbours
    fcntl = None  # type: ignore[assignment]


if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

# A process starts before it names its profile, within this tolerance for clock adjustments.
_CLOCK_TOLERANCE_S: Final = 60.0
_SILENT_S: Final = 900.0
_LOOKS: Final = 10
_BETWEEN_LOOKS_S: Final = 0.05


@dataclass(frozen=True, slots=True)
class Writer:
    """A process that will write a profile.

    Attributes:
        job: identity that all ranks of the job on this host share, and no other job has.
        name: beginning of the names of its files, unique in the job.
        is_restart: whether the job has files already, which stay.
        is_same_everywhere: whether ranks on other hosts have the same identity of the job.
    """

    job: str
    name: str
    is_restart: bool = False
    is_same_everywhere: bool = False


@dataclass(frozen=True, slots=True)
class Content:
    """What a run directory holds beside profiles; see `run_directory.create`."""

    program: str
    options: Mapping[str, Any]


def join(run: Path, writer: Writer, content: Content) -> Path:
    """Return the path for the profile of this process, whose process id stays; make its folder.

    Args:
        run: the run directory, whose parent exists.
        writer: this process.
        content: the same for all processes of the job.

    Raises:
        UserError: a file or another folder has this name, or the folder may not be written.
        EnvironmentProblem: the machine fails to write there.
    """
    with explained(run):
        folder = Path(os.path.realpath(run))
        if not run_directory.is_run(folder):
            with _new(folder, folder.parent, content) as new:
                _move_once(new, folder)
        path, is_first = _join(folder, writer, lambda: _refresh(folder, content))
        if is_first and writer.is_same_everywhere and not writer.is_restart:
            _clear_other_hosts(folder, path.parent, writer.job)
        return path


def _join(run: Path, writer: Writer, on_first: Callable[[], None]) -> tuple[Path, bool]:
    path = run_directory.profile_path(run)
    path = path.with_name(f"{writer.name}-{path.name}")
    with _locked(path.with_name(run_directory.HOST_STATE)) as (state, is_locked):
        known = _content(state)
        writers = [name for name in known.get("writers", []) if isinstance(name, str)]
        is_second_run = any(name.startswith(f"{writer.name}-") for name in writers)
        is_first = known.get("job") != writer.job or is_second_run
        if is_first and is_locked and not writer.is_restart and not _is_any_running(path, writers):
            _remove_profiles(path.parent)
            writers = []
        if is_first:
            on_first()
        known = {
            "job": writer.job,
            "is_same_everywhere": writer.is_same_everywhere,
            "writers": [*writers, path.stem],
        }
        state.seek(0)
        state.truncate()
        state.write(json.dumps(known).encode())
    return path, is_first


def _clear_other_hosts(run: Path, own: Path, job: str) -> None:
    """Remove what an earlier job left on hosts that may not belong to this job.

    Removes only files that have not been written for a while, because this host cannot see whether
    their processes run. A running process writes its profile again with its next snapshot.
    """
    now_s = (own / run_directory.HOST_STATE).stat().st_mtime  # by the clock of the file server
    for state in run.glob(f"*/{run_directory.HOST_STATE}"):
        if state.parent == own:
            continue
        with _locked(state) as (file, is_locked):
            known = _content(file)
            is_other = known.get("is_same_everywhere") is True and known.get("job") != job
            written_s = [path.stat().st_mtime for path in (state, *state.parent.glob("*.dcprof"))]
            if is_locked and is_other and now_s - max(written_s) > _SILENT_S:
                _remove_profiles(state.parent)


@contextlib.contextmanager
def _new(run: Path, parent: Path, content: Content) -> Iterator[Path]:
    """Make a run directory in `parent`, under a name that no other process uses."""
    new = parent / f".{run.name}.{os.uname().nodename}-{os.getpid()}"
    try:
        try:
            run_directory.create(new, program=content.program, options=content.options)
        except (UserError, EnvironmentProblem) as error:
            raise type(error)(str(error).replace(str(new), str(run))) from error
        yield new
    finally:
        shutil.rmtree(new, ignore_errors=True)


def _move_once(new: Path, run: Path) -> None:
    """Give a new run directory its name, unless another process was faster."""
    try:
        new.rename(run)  # fails if a folder with content is there
    except OSError as error:
        for _ in range(_LOOKS if run.is_dir() else 0):
            if run_directory.is_run(run):
                return
            # A network file system shows the other host's directory late.
            time.sleep(_BETWEEN_LOOKS_S)
        if run.exists() or run.is_symlink():
            raise UserError(run_directory.foreign(run)) from error
        raise


def _refresh(run: Path, content: Content) -> None:
    """Replace what an earlier job left beside profiles, each file at once."""
    with _new(run, run, content) as new:
        for path in (path for path in new.rglob("*") if path.is_file()):
            target = run / path.relative_to(new)
            run_directory.make_private(target.parent)
            path.replace(target)
    (run / run_directory.MERGED).unlink(missing_ok=True)


def _remove_profiles(folder: Path) -> None:
    (folder / run_directory.STARTED).unlink(missing_ok=True)
    for path in folder.glob("*.dcprof"):
        # The user may keep a profile there under another name.
        if run_directory.PROFILE_NAME.fullmatch(path.stem):
            path.unlink(missing_ok=True)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[tuple[IO[bytes], bool]]:
    """Open a file and lock it; the second value is whether this file system has locks."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    with os.fdopen(descriptor, "r+b") as file:
        try:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX)
            is_locked = fcntl is not None
        except OSError:
            is_locked = False
        yield file, is_locked


def _content(file: IO[bytes]) -> dict[str, Any]:
    try:
        content = json.loads(file.read())
    except ValueError:  # new, or its writer was killed
        return {}
    return content if isinstance(content, dict) else {}


def _is_any_running(path: Path, writers: list[str]) -> bool:
    names = {*writers, *(each.stem for each in path.parent.glob("*.dcprof"))}
    return any(is_running(name) for name in names)


def is_running(name: str) -> bool:
    """Return whether the process that chose this name for its profile still runs."""
    parts = run_directory.PROFILE_NAME.fullmatch(name)
    if parts is None:
        return False
    chosen_s = int(parts["start"], 16) / 1000
    try:
        text = Path(f"/proc/{int(parts['pid'])}/stat").read_text("utf-8", "replace")
    except OSError:
        return False
    # After the name of the program, which may hold spaces: state, parent, ..., start as field 22.
    fields = text.rpartition(")")[2].split()
    began_s = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    began_s += int(fields[19]) / os.sysconf("SC_CLK_TCK")
    return fields[0] not in {"Z", "X"} and began_s <= chosen_s + _CLOCK_TOLERANCE_S
