"""Standard output and error of the command line: full, closed, or a pipe without a reader.

A failure of standard output is one clear error, whichever library was printing. A failure of standard
error only loses the message, because there is no other place to report it. Leaves the descriptors
unchanged, because the program of `deepcontext profile` inherits them.
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
    """The reader of standard output has ended; no BrokenPipeError, because libraries catch that."""

    exit_code = PIPE_CLOSED


@contextlib.contextmanager
def guarded_streams() -> Iterator[None]:
    """Replace `sys.stdout` and `sys.stderr` by guards; flush them at the end.

    Raises:
        EnvironmentProblem: standard output cannot be written to.
        ReaderGoneError: the reader of standard output has ended.
    """
    streams = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = _Output(streams[0]), _Errors(streams[1])
    try:
        yield
    except BaseException:
        with contextlib.suppress(DeepContextError):  # report only the first failure
            sys.stdout.flush()
        raise
    else:
        sys.stdout.flush()
    finally:
        sys.stdout, sys.stderr = streams


def complain(text: str) -> None:
    """Write to standard error; ignore failures."""
    stream = _Errors(sys.stderr)
    stream.write(text)
    stream.flush()


def occupy_closed_descriptors() -> None:
    """Keep files that a command opens from taking the descriptors of closed standard streams."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number


def die_of_closed_pipe() -> int:
    """End the process as SIGPIPE ends any other; return the exit code if the signal is blocked."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGPIPE)
    return PIPE_CLOSED


class _Guard:
    """A stream that may fail, or be missing if the process was started without that stream."""

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
        """Redirect the stream to /dev/null, so that the flush at interpreter exit cannot fail again."""
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
            except UnicodeEncodeError:  # a file name that is no valid text, or no UTF-8 terminal
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
            raise ReaderGoneError("the reader of standard output has ended") from error
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
