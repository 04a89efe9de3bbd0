"""Write files without destroying files of the user. Every file of deepcontext is written here.

An existing file is replaced only if it is empty, if it has the kind to be written, or with `force`.
Invariants: a reader sees the old content or the new content, never a part; a failed write keeps the old
file and leaves no other file behind. Runs inside the program under test, hence the standard library
only.
"""

from __future__ import annotations

import contextlib
import itertools
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from deepcontext.errors import UserError
from deepcontext.profiler.format import own_os, schema
from deepcontext.profiler.format.own_os import os
from deepcontext.profiler.format.write_errors import explained

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HEAD_BYTES: Final = 65_536
_MOST_LINKS: Final = 40
_STANDARD_ERROR: Final = 2
_OWNERS: Final = 0o600
_numbers = itertools.count(1)


class ForeignFileError(UserError):
    """The file that exists at a path may not be replaced.

    Attributes:
        reason: why: "the file exists and is not a profile"; "" for what is no regular file.
    """

    def __init__(self, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class FileKind:
    """A kind of file, and how to recognise it.

    Attributes:
        name: with its article, for messages: "a profile".
        matches: whether a file with these first bytes (at most `HEAD_BYTES`) and this name is of
            the kind.
    """

    name: str
    matches: Callable[[bytes, str], bool]

    @classmethod
    def beginning_with(cls, name: str, start: bytes) -> FileKind:
        """Return the kind of the files that begin with `start`."""
        return cls(name, lambda head, _: head.startswith(start))


PROFILE: Final = FileKind.beginning_with("a profile", schema.MAGIC)


def check(path: str | os.PathLike[str], kind: FileKind, *, force: bool = False) -> None:
    """Check whether `write` would succeed now, before its content is computed.

    Raises:
        ForeignFileError: the file exists and may not be replaced, or is a folder.
        UserError: its folder does not exist or may not be written to.
        EnvironmentProblem: the machine fails to write there.
    """
    with explained(path):
        if descriptor_of(path) is not None:
            return
        target = os.path.realpath(os.fsdecode(path))
        if _is_stream(_judged(path, target, kind, force=force)):
            return
        # Only trying finds missing permissions, read-only mounts and file systems such as /proc.
        descriptor, temporary = _new_file(os.path.dirname(target))
        os.close(descriptor)
        os.unlink(temporary)


def write(
    content: bytes, path: str | os.PathLike[str], kind: FileKind, *, force: bool = False
) -> None:
    """Write a file, replacing one of the same kind in one step.

    At a symbolic link, the file that the link points to is replaced. The permissions of a replaced
    file are kept. Devices, pipes and paths such as /dev/stdout are written to directly.

    Raises:
        ForeignFileError: the file exists and may not be replaced, or is a folder.
        UserError: its folder does not exist or may not be written to.
        EnvironmentProblem: the machine failed to write, for example on a full disk.
        BrokenPipeError: nobody reads the pipe any more.
    """
    with explained(path):
        descriptor = descriptor_of(path)
        if descriptor is not None:
            with _standard_streams_left_alone():
                copy = os.dup(descriptor)
            _write_to(copy, content)
            return
        target = os.path.realpath(os.fsdecode(path))
        if _is_stream(_judged(path, target, kind, force=force)):
            with _standard_streams_left_alone():
                descriptor = os.open(target, os.O_WRONLY | os.O_CLOEXEC | os.O_NOCTTY)
            _write_to(descriptor, content)
            return
        descriptor, temporary = _new_file(os.path.dirname(target))
        try:
            _write_to(descriptor, content, is_file=True)
            # Check again, because writing takes a while.
            replaced = _judged(path, target, kind, force=force)
            if replaced is not None:
                _take_over(temporary, replaced)
            os.replace(temporary, target)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise


def descriptor_of(path: str | os.PathLike[str]) -> int | None:
    """Return N for /dev/fd/N and for links to it such as /dev/stdout, None for any other path.

    Opening such a path again would begin at the start of a file that this process shares with
    others, and renaming over it would replace that file.
    """
    here = os.fsdecode(path)
    descriptors = f"/proc/{os.getpid()}/fd"
    # `check` and `write` report all other errors in a path.
    with contextlib.suppress(OSError, ValueError):
        for _ in range(_MOST_LINKS):
            folder, name = os.path.split(here)
            folder = os.path.realpath(folder or ".")
            if folder == descriptors and name.isdecimal():
                return int(name)
            here = os.path.join(folder, os.readlink(os.path.join(folder, name)))
    return None


def _judged(
    path: str | os.PathLike[str], target: str, kind: FileKind, *, force: bool
) -> os.stat_result | None:
    """Return the status of the file at `target`, which may be written to; None for no file."""
    name = os.fsdecode(path)
    try:
        status = os.stat(target)
    except FileNotFoundError:
        folder = os.path.dirname(target)
        if os.path.isdir(folder):
            return None
        raise UserError(
            f"cannot write '{name}': the folder '{folder}' does not exist; create it first"
        ) from None
    mode = status.st_mode
    if stat.S_ISDIR(mode):
        raise ForeignFileError(f"cannot write '{name}': it is a folder; name a file in it")
    if stat.S_ISBLK(mode) or stat.S_ISSOCK(mode):
        raise UserError(f"cannot write '{name}': it is a disk or a socket; name a file")
    reason = None if force or _is_stream(status) else _reason_to_keep(target, status, kind)
    if reason is not None:
        raise ForeignFileError(
            f"cannot write '{name}': {reason}, so it is not replaced; choose another name, or add "
            "--force (in Python, force=True)",
            reason,
        )
    return status


def _reason_to_keep(target: str, status: os.stat_result, kind: FileKind) -> str | None:
    """Say why an existing file must not be replaced, None where it may be."""
    if not status.st_size:
        return None  # as mktemp leaves it
    try:
        # Does not block if the file has become a pipe meanwhile.
        descriptor = os.open(target, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            head = own_os.read(descriptor, HEAD_BYTES)
        finally:
            os.close(descriptor)
    except OSError as error:
        return f"the file exists and cannot be read to see what it is ({error.strerror})"
    if not kind.matches(head, os.path.basename(target)):
        return f"the file exists and is not {kind.name}"
    # Root may write to every file; the permission bits tell what the owner wants.
    if not status.st_mode & 0o222 or not os.access(target, os.W_OK):
        return "the file exists and is write-protected"
    return None


def _is_stream(status: os.stat_result | None) -> bool:
    return status is not None and not stat.S_ISREG(status.st_mode)


def _new_file(folder: str) -> tuple[int, str]:
    """Make an empty file in `folder`; return its descriptor and its path."""
    while True:
        path = os.path.join(folder, f".deepcontext.{os.getpid()}.{next(_numbers)}.tmp")
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            with _standard_streams_left_alone():
                descriptor = os.open(path, flags, 0o666)
        except FileExistsError:
            continue  # left by a killed process, or by another one with the same number
        mode = os.fstat(descriptor).st_mode
        if mode & _OWNERS != _OWNERS:  # the program's umask would make the next write fail
            with contextlib.suppress(OSError):
                os.fchmod(descriptor, mode | _OWNERS)
        return descriptor, path


@contextlib.contextmanager
def _standard_streams_left_alone() -> Iterator[None]:
    """Keep files that are opened in the block from taking the numbers 0, 1 and 2, if they are free.

    The program, or a library in it, may still print to such a number. Meanwhile the print fails with
    EBADF, as on a closed descriptor.
    """
    reserved = []
    try:
        while (descriptor := os.open("/", os.O_PATH | os.O_CLOEXEC)) <= _STANDARD_ERROR:
            reserved.append(descriptor)
        os.close(descriptor)
        yield
    finally:
        for descriptor in reserved:
            os.close(descriptor)


def _write_to(descriptor: int, content: bytes, *, is_file: bool = False) -> None:
    try:
        left = memoryview(content)
        while left:
            left = left[os.write(descriptor, left) :]
        if is_file:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _take_over(temporary: str, replaced: os.stat_result) -> None:
    """Give the new file the permissions of the old one, and its owner where that is allowed."""
    made = os.stat(temporary)
    if (made.st_uid, made.st_gid) != (replaced.st_uid, replaced.st_gid):
        with contextlib.suppress(OSError):
            os.chown(temporary, replaced.st_uid, replaced.st_gid)
    os.chmod(temporary, replaced.st_mode & 0o777)
