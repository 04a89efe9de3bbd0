"""Standard error as it was when the program began: where the launcher prints.

Does not use `sys.stderr`, which the program may replace. Invariant: if the stream is closed, full or
read by nobody, the launcher's lines are lost and nothing else.
"""

from __future__ import annotations

import select
import signal
from typing import Final

from deepcontext.profiler.format.own_os import os

_DESCRIPTOR: Final = 2
# A reader that reads nothing for this time may be waiting for the program to end.
_LONGEST_WAIT_MS: Final = 1000


class StandardError:
    """The file that was open as descriptor 2 when this object was made, if there was one."""

    def __init__(self) -> None:
        self._identity = _identity()

    def has_room(self) -> bool:
        """Return whether descriptor 2 is still that file, with space for a few lines."""
        if self._identity is None or self._identity != _identity():
            return False  # closed by the program: descriptor 2 may be one of its files now
        poll = select.poll()
        poll.register(_DESCRIPTOR, select.POLLOUT)
        if poll.poll(_LONGEST_WAIT_MS) != [(_DESCRIPTOR, select.POLLOUT)]:
            self._identity = None  # one wait is enough
        return self._identity is not None

    def say(self, *texts: str) -> None:
        """Write lines, each marked as the profiler's."""
        if not texts or not self.has_room():
            return
        # The signal would end a program that has restored its default action.
        earlier = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGPIPE})
        try:
            lines = "".join(f"[deepcontext] {text}\n" for text in texts)
            os.write(_DESCRIPTOR, lines.encode(errors="backslashreplace"))
        except BrokenPipeError:
            signal.sigtimedwait({signal.SIGPIPE}, 0)
        except OSError:  # full
            pass
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, earlier)


def _identity() -> tuple[int, int] | None:
    try:
        status = os.fstat(_DESCRIPTOR)
    except OSError:
        return None
    return status.st_dev, status.st_ino
