"""Why a file or a folder cannot be written, and what to do.

Standard library only. Invariant: no message has the name of a temporary file.
"""

from __future__ import annotations

import contextlib
import errno
import os
from typing import TYPE_CHECKING, Final

from deepcontext.errors import EnvironmentProblem, UserError

if TYPE_CHECKING:
    from collections.abc import Iterator

# Errors that another path avoids; all others are failures of the machine.
_REQUEST_ERRORS: Final = frozenset({
    errno.EACCES,
    errno.EBADF,
    errno.EINVAL,
    errno.EISDIR,
    errno.ELOOP,
    errno.ENAMETOOLONG,
    errno.ENOENT,
    errno.ENOTDIR,
    errno.ENXIO,
    errno.EPERM,
    errno.EROFS,
})

_ADVICE: Final = {
    errno.EMFILE: "the program has as many files open as it may; raise the limit (ulimit -n)",
    errno.ENFILE: "the machine has as many files open as it may; close some",
}


@contextlib.contextmanager
def explained(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn errors of the operating system into those of deepcontext."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        failed = f"cannot write '{os.fsdecode(path)}': {error.strerror or error}"
        if error.errno in _REQUEST_ERRORS:
            raise UserError(
                f"{failed}; choose a folder that exists and may be written to"
            ) from error
        if error.errno is None:  # Python code of the program raised it
            raise EnvironmentProblem(
                f"{failed}; the program raised this, so allow the file in its audit hook"
            ) from error
        advice = _ADVICE.get(error.errno, "free some space, or choose another disk")
        raise EnvironmentProblem(f"{failed}; {advice}") from error
    except ValueError as error:  # a null character
        raise UserError(f"cannot write {os.fsdecode(path)!r}: {error}; name a file") from error
