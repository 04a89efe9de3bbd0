"""The folder that a job of several processes writes: a profile for each process.

    train.dcrun/                 private to the user
      job.json                   the program; distinguishes a run directory from other folders; names
                                 the program's own profile while that is beside the directory
      .launch/                   on PYTHONPATH of the children: options.json; `failed`, a line for each
                                 child that could not record
      HOST/ROLE-PID-START.dcprof HOST without characters that are special in a shell or a path;
                                 ROLE: rankN, program, pool, loader, or nothing where it is not known
      HOST/started               a byte for each child that began to record, or would have; see `claim`
      job.dcprof                 all ranks together, if `deepcontext merge` wrote it
      HOST/job                   of ranks that were started one by one (`host_folder.py`)

Standard library only, because processes of the job import this module.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from deepcontext.errors import UserError
from deepcontext.profiler.format.write_errors import explained

if TYPE_CHECKING:
    from collections.abc import Mapping

SUFFIX: Final = ".dcrun"
_ALL: Final = "all"
OPTIONS: Final = "options.json"
HOST_STATE: Final = "job"
STARTED: Final = "started"
# Children of one host that have a profile: some 100 MB, and a few seconds to read.
MOST_CHILDREN: Final = 512
MERGED: Final = "job.dcprof"
PRIVATE: Final = 0o700
_JOB: Final = "job.json"
_LAUNCH: Final = ".launch"
# Ending of the other folder on the children's PYTHONPATH, which contains their `sitecustomize.py`.
# That folder is not part of the run directory, because importlib makes missing folders for
# bytecode: a child that starts while the directory is removed would make the directory again.
_SHIM_FOLDER: Final = "/deepcontext/profiler/recording/launch/children_path"
_PROFILE: Final = "profile"  # in job.json
_FORMAT: Final = "deepcontext run"
_VERSION: Final = 1
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_.-]")
_LONGEST_NAME: Final = 64
# The name of a profile without its suffix. The next run removes only files with such names.
PROFILE_NAME: Final = re.compile(
    r"(?:(?:rank(?P<rank>\d+)(?:\.attempt\d+)?|program|pool|loader)-)?"
    r"(?P<pid>\d+)-(?P<start>[0-9a-f]+)"
)
_MOST_TOLD: Final = 5
_FAILED: Final = "failed"
_MOST_FAILURES_BYTES: Final = 1 << 16


def is_run(path: str | os.PathLike[str]) -> bool:
    """Return whether `path` is a run directory."""
    return _description(Path(path)) is not None


def create(
    path: Path, *, program: str, options: Mapping[str, Any], profile: Path | None = None
) -> None:
    """Make a run directory, replacing an older one.

    Args:
        path: the folder, whose parent exists.
        program: the program, as the user typed it.
        options: what the `sitecustomize.py` of children reads, in JSON types.
        profile: the program's own profile, if it is written elsewhere; see `adopt`.

    Raises:
        UserError: a file or another folder has this name, or the folder may not be written.
        EnvironmentProblem: the machine fails to write there.
    """
    with explained(path):
        if path.exists() or path.is_symlink():
            _clear(path)
        path.mkdir(mode=PRIVATE, exist_ok=True)
        path.chmod(PRIVATE)
        description = {
            "format": _FORMAT,
            "version": _VERSION,
            "program": program,
            "start_unix_ns": time.time_ns(),
        }
        if profile is not None:
            description[_PROFILE] = os.path.relpath(profile, path.parent)
        try:
            launch = launch_folder(path)
            launch.mkdir(mode=PRIVATE)
            (launch / OPTIONS).write_text(json.dumps(options), encoding="utf-8")
            if options.get("children") == "all":
                (launch / _ALL).touch()  # children need not read the options to know
            (path / _JOB).write_text(json.dumps(description), encoding="utf-8")
        except OSError:  # half a run directory would not be replaced by the next run
            _remove_launch_folder(path)
            (path / _JOB).unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # the user keeps files there
                path.rmdir()
            raise


def launch_folder(run: Path) -> Path:
    """Return the folder by which children find the run directory, an entry of their PYTHONPATH."""
    return run / _LAUNCH


def without_launch_folders(python_path: str | None) -> str | None:
    """Return a PYTHONPATH without what leads children to run directories; None if nothing is left."""
    entries = (python_path or "").split(os.pathsep)
    kept = [
        entry
        for entry in entries
        if Path(entry).name != _LAUNCH and not entry.endswith(_SHIM_FOLDER)
    ]
    return python_path if len(kept) == len(entries) else os.pathsep.join(kept) or None


def make_private(folder: Path) -> None:
    """Make a folder that its owner alone may use, whatever the program's umask; it may exist."""
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=PRIVATE)
        folder.chmod(PRIVATE)


def profile_path(run: Path, start_ns: int | None = None) -> Path:
    """Return the path of this process's profile; create its folder.

    Args:
        run: the run directory.
        start_ns: when the process began to record, in ns since 1970; None for now.
    """
    folder = _host_folder(run)
    make_private(folder)
    # The start time is in the name because process numbers are reused.
    start_ms = (time.time_ns() if start_ns is None else start_ns) // 1_000_000
    return folder / f"{os.getpid():07}-{start_ms:x}.dcprof"


def claim(run: Path) -> bool:
    """Return whether this child may record: only the first `MOST_CHILDREN` of a host do.

    Each child asks once and appends one byte to a file. The position of this byte is the child's
    number; the kernel gives each process of a host a different position.
    """
    folder = _host_folder(run)
    make_private(folder)
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
    descriptor = os.open(folder / STARTED, flags, 0o600)
    try:
        os.fchmod(descriptor, 0o600)  # whatever the umask, because other children open it
        os.write(descriptor, b".")
        return os.lseek(descriptor, 0, os.SEEK_CUR) <= MOST_CHILDREN
    finally:
        os.close(descriptor)


def left_out_text(run: Path) -> str:
    """Return what to say of children that have no profile but should, "" if there are none."""
    counts = (path.stat().st_size - MOST_CHILDREN for path in run.glob(f"*/{STARTED}"))
    count = sum(max(count, 0) for count in counts)
    told = (
        f" ({count} more were not recorded: {MOST_CHILDREN} children of a host are)"
        if count
        else ""
    )
    failed = failures(run)
    return f"{told} ({len(failed)} could not be recorded: {failed[0]})" if failed else told


def note_failure(run: Path, text: str) -> None:
    """Keep why this process could not record, for its job to tell; its own streams are not used.

    Does nothing if the run directory is gone, because nobody reads it then.
    """
    line = f"process {os.getpid()}: {' '.join(text.split())}\n"
    with contextlib.suppress(OSError):
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        descriptor = os.open(launch_folder(run) / _FAILED, flags, 0o600)
        try:
            os.write(descriptor, line.encode(errors="backslashreplace"))
        finally:
            os.close(descriptor)


def failures(run: Path) -> list[str]:
    """Return why processes could not record: ``process 123: ImportError: ...``."""
    try:
        with open(launch_folder(run) / _FAILED, "rb") as file:  # noqa: PTH123
            content = file.read(_MOST_FAILURES_BYTES)
    except OSError:
        return []
    return content.decode(errors="replace").splitlines()


def profiles(run: Path) -> list[Path]:
    """Return the profiles of a run, ordered by the start of recording.

    The program's own profile comes first while it is beside the directory: the program is running, or
    was killed.
    """
    found = [path for path in run.glob("*/*.dcprof") if path.is_file()]
    beside = (_description(run) or {}).get(_PROFILE)
    own = [run.parent / beside] if isinstance(beside, str) else []
    return [
        *(path for path in own if path.is_file()),
        *sorted(found, key=lambda path: (path.stem.rpartition("-")[2].zfill(16), path.name)),
    ]


def count_text(run: Path) -> str:
    """Return ``profiles of 3 processes``, and how many were not recorded."""
    count = len(profiles(run))
    return f"profiles of {count} process{'es' * (count != 1)}{left_out_text(run)}"


def is_used(run: Path) -> bool:
    """Return whether a process has begun to record in the run directory."""
    return any(path.is_dir() and path.name != _LAUNCH for path in run.iterdir())


def failure_notes(run: Path) -> list[str]:
    """Return what the job says of processes that could not record, of the first five."""
    return [f"not recorded: {text}" for text in failures(run)[:_MOST_TOLD]]


def named(path: Path, role: str) -> Path:
    """Return the path of a profile whose process has the role `role`, "" for an unknown one."""
    parts = PROFILE_NAME.fullmatch(path.stem)
    if parts is None or not role:
        return path
    return path.with_name(f"{role}-{parts['pid']}-{parts['start']}{path.suffix}")


def rank_name(number: int, attempt: int = 0) -> str:
    """Return the beginning of the names of a rank's files."""
    return f"rank{number:05}" + (f".attempt{attempt}" if attempt else "")


def adopt(run: Path, profile: Path, *, role: str, is_kept: bool) -> Path:
    """Move this process's profile into the run directory.

    Args:
        run: the run directory.
        profile: the profile that was passed to `create`.
        role: beginning of its new name.
        is_kept: also leave the profile where it is.

    Returns:
        the profile's path in the run directory.
    """
    description = _description(run) or {}
    target = named(profile_path(run, description.get("start_unix_ns")), role)
    if not is_kept:
        profile.replace(target)
    else:
        try:
            target.hardlink_to(profile)
        except OSError:  # not on this file system
            target.write_bytes(profile.read_bytes())
            target.chmod(0o600)
    description.pop(_PROFILE, None)
    changed = run / f"{_JOB}.new"
    changed.write_text(json.dumps(description), encoding="utf-8")
    changed.chmod(0o600)  # whatever the umask
    changed.replace(run / _JOB)
    return target


def remove(run: Path) -> None:
    """Remove a run directory, except for files that a user keeps in it."""
    _clear(run)
    with contextlib.suppress(OSError):
        run.rmdir()


def rank_count(run: Path) -> int:
    """Return how many separately started ranks have a profile."""
    names = (PROFILE_NAME.fullmatch(path.stem) for path in profiles(run))
    return len({int(name["rank"]) for name in names if name and name["rank"]})


def foreign(path: Path) -> str:
    """Return why a folder that is no run directory is not replaced, as an error says it."""
    if not path.is_dir():
        return f"cannot write '{path}': it exists and is not a folder; choose another name"
    return (
        f"cannot write '{path}': the folder exists and is not a run directory, so it is not replaced; "
        "choose another name"
    )


def process_numbers(run: Path) -> dict[int, int]:
    """Return when the processes of this host that have a profile began to record, ms since 1970."""
    try:
        names = os.listdir(_host_folder(run))  # noqa: PTH208  called at each snapshot
    except OSError:
        return {}
    found = (PROFILE_NAME.fullmatch(name.removesuffix(".dcprof")) for name in names)
    known = sorted((int(each["start"], 16), int(each["pid"])) for each in found if each)
    return {pid: start for start, pid in known}  # a number that was used again: the later one


def host_name() -> str:
    """Return the name of this host's folder in run directories."""
    return _UNSAFE.sub("_", os.uname().nodename).lstrip(".")[:_LONGEST_NAME] or "host"


def _host_folder(run: Path) -> Path:
    return run / host_name()


def _description(run: Path) -> dict[str, Any] | None:
    try:
        content = json.loads((run / _JOB).read_bytes())
    except (OSError, ValueError):
        return None
    is_known = isinstance(content, dict) and content.get("format") == _FORMAT
    return content if is_known else None


def _clear(path: Path) -> None:
    """Remove the files of an older run from its directory; refuse any other folder with content."""
    entries = list(path.iterdir()) if path.is_dir() else []
    if not path.is_dir() or (entries and not is_run(path)):
        raise UserError(foreign(path))
    for profile in path.glob("*/*.dcprof"):
        # The user may keep a profile there under another name, or link a folder of profiles.
        if PROFILE_NAME.fullmatch(profile.stem) and not profile.parent.is_symlink():
            profile.unlink()
    _remove_launch_folder(path)
    for name in (_JOB, MERGED):
        (path / name).unlink(missing_ok=True)
    folders = (each for each in entries if each.is_dir() and not each.is_symlink())
    for folder in (each for each in folders if each.name != _LAUNCH):
        with contextlib.suppress(OSError):  # the user keeps files there
            for name in (HOST_STATE, STARTED):
                (folder / name).unlink(missing_ok=True)
            folder.rmdir()


def _remove_launch_folder(run: Path) -> None:
    launch = launch_folder(run)
    with contextlib.suppress(OSError):
        for folder in (launch / "__pycache__", launch):  # the first was made by older versions
            for path in folder.glob("*"):
                if not path.is_dir():
                    path.unlink()
            if folder.is_dir():
                folder.rmdir()
