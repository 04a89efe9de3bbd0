"""A lock that hooks on the program's threads share with operations.

A signal handler may interrupt a hook that holds a lock, and call an operation that needs the lock.
Invariant: nobody waits for a thread that itself waits for an operation.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from deepcontext import _native
from deepcontext.profiler.format.own_os import os
from deepcontext.profiler.recording import clock

if TYPE_CHECKING:
    from types import TracebackType

_BETWEEN_LOOKS_S: Final = 0.05
# A holder that an exception of a handler ended before it could give the lock back.
_LONGEST_WAIT_S: Final = 10.0


class ProgramLock:
    """A re-entrant lock; goes on without it when its holder stands still until this thread is done."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._inside: list[int] = []  # threads that hold or want the lock
        self._process = os.getpid()

    def __enter__(self) -> None:
        if self._process != os.getpid():
            self._forget_others()
        self._inside.append(threading.get_ident())
        end = clock.monotonic_s() + _LONGEST_WAIT_S
        while not self._lock.acquire(timeout=_BETWEEN_LOOKS_S):
            stands_still = any(map(_native.waits_for_operation, list(self._inside)))
            if stands_still or clock.monotonic_s() > end:
                return

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._is_own():
            self._lock.release()
        self._inside.remove(threading.get_ident())

    def _forget_others(self) -> None:
        """Of a forked child: only this thread exists, which may have forked with the lock in its hands."""
        self._inside = [each for each in self._inside if each == threading.get_ident()]
        if not self._is_own():
            self._lock = threading.RLock()
        self._process = os.getpid()

    def _is_own(self) -> bool:
        return self._lock._is_owned()  # type: ignore[attr-defined, no-any-return]  # noqa: SLF001  as threading.Condition does
