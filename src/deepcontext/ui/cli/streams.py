"""Standard output and error of the command line: full, closed, or a pipe that nobody reads any more.

A failure of standard output is one clear error, whichever library was printing; standard error is
where errors are told, so its own failure costs nothing but the words. Does not touch the
descriptors, which `deepcontext profile` hands on to the program.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from typing import TYPE_CHECKING, Any

from deepcontext.errors import DeepContextError, EnvironmentProblem

if TYPE_CHECKING:
    from collections.abc import Iterator

PIPE_CLOSED = 128 + signal.SIGPIPE


class ReaderGoneError(DeepContextError):
    """Whoever read standard output has enough; no BrokenPipeError, which libraries act upon."""

    exit_code = PIPE_CLOSED


@contextlib.contextmanager
def guarded_streams() -> Iterator[None]:
    """Put the guards in the place of `sys.stdout` and `sys.stderr`; write out what they hold.

    Raises:
        EnvironmentProblem: standard output cannot be written to.
        ReaderGoneError: nobody reads standard output any more.
    """
    streams = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = _Output(streams[0]), _Errors(streams[1])
    try:
        yield
    except BaseException:
        with contextlib.suppress(DeepContextError):  # the first failure is the one to tell
            sys.stdout.flush()
        raise
    else:
        sys.stdout.flush()
    finally:
        sys.stdout, sys.stderr = streams


def complain(text: str) -> None:
    """Write to standard error, as far as that can be written to."""
    stream = _Errors(sys.stderr)
    stream.write(text)
    stream.flush()


def occupy_closed_descriptors() -> None:
    """Let no file that a command opens be taken for standard output or error."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free


def die_of_closed_pipe() -> int:
    """End the process as SIGPIPE ends any other; return the exit code if the signal is blocked."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGPIPE)
    return PIPE_CLOSED


class _Guard:
    """A stream that may fail or, where the process was started without one, be missing."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    @property
    def encoding(self) -> str:
        return getattr(self._stream, "encoding", None) or "utf-8"

    def isatty(self) -> bool:
        return self._stream is not None and self._stream.isatty()

    def _forget(self) -> None:
        """Let the interpreter not fail again, at its end, on what the stream still holds."""
        with contextlib.suppress(OSError, ValueError):
            descriptor = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
            os.dup2(descriptor, self._stream.fileno())
            os.close(descriptor)


class _Output(_Guard):
    """Standard output."""

    @property
    def buffer(self) -> Any:
        return _Output(self._stream and self._stream.buffer)

    def write(self, content: Any) -> int:
        with self._failing():
            try:
                return int(self._stream.write(content))
            except UnicodeEncodeError:  # a file name that is no text, on a terminal without UTF-8
                plain = content.encode(self.encoding, "backslashreplace").decode(self.encoding)
                return int(self._stream.write(plain))

    def flush(self) -> None:
        if self._stream is not None:
            with self._failing():
                self._stream.flush()

    @contextlib.contextmanager
    def _failing(self) -> Iterator[None]:
        if self._stream is None:
            raise EnvironmentProblem(
                "cannot write to standard output: it is closed; redirect it to /dev/null if the "
                "output is not wanted"
            )
        try:
            yield
        except BrokenPipeError as error:
            self._forget()
            raise ReaderGoneError("nobody reads standard output any more") from error
        except OSError as error:
            self._forget()
            raise EnvironmentProblem(
                f"cannot write to standard output: {error.strerror}; the output is incomplete"
            ) from error


class _Errors(_Guard):
    """Standard error."""

    def write(self, content: str) -> int:
        if self._stream is not None:
            try:
                self._stream.write(content)
            except OSError:
                self._forget()
        return len(content)

    def flush(self) -> None:
        if self._stream is not None:
            try:
                self._stream.flush()
            except OSError:
                self._forget()
