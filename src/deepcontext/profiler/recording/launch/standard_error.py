"""Standard error as the program began with it: where the launcher's words go.

Does not use `sys.stderr`, which the program may replace. Invariant: a stream that is closed, full or
read by nobody costs words and nothing else.
"""

from __future__ import annotations

import os
import select
import signal
from typing import Final

_DESCRIPTOR: Final = 2
# A reader that takes nothing for so long may be waiting for the program to end.
_LONGEST_WAIT_MS: Final = 1000


class StandardError:
    """The file that was on descriptor 2 when this was made; none if there was no file."""

    def __init__(self) -> None:
        self._identity = _identity()

    def takes_words(self) -> bool:
        """Return whether the same file is there still, and has space for a few lines."""
        if self._identity is None or self._identity != _identity():
            return False  # the program has closed it, and it may be one of its own files now
        poll = select.poll()
        poll.register(_DESCRIPTOR, select.POLLOUT)
        if poll.poll(_LONGEST_WAIT_MS) != [(_DESCRIPTOR, select.POLLOUT)]:
            self._identity = None  # one wait is enough
        return self._identity is not None

    def say(self, text: str) -> None:
        """Write one line, marked as the profiler's."""
        if not self.takes_words():
            return
        # Where the program has restored the signal's default action, it would end the program.
        earlier = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGPIPE})
        try:
            os.write(_DESCRIPTOR, f"[deepcontext] {text}\n".encode(errors="backslashreplace"))
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
