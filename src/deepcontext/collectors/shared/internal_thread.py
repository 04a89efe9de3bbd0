"""Threads of the profiler: one that runs a function once, and one that stays."""

from __future__ import annotations

import _thread
from typing import TYPE_CHECKING, Final, TypeVar

from deepcontext import _native

if TYPE_CHECKING:
    from collections.abc import Callable

NO_THREAD: Final = "the process may have no more threads (ulimit -u, or a container's limit)"
_LONGEST_JOIN_S: Final = 30.0  # a call of a framework, which it may be in, may hang
Result = TypeVar("Result")


def run_in_internal_thread(work: Callable[[], Result]) -> Result:
    """Run `work` on a thread of the profiler; return what it returns or raise what it raises.

    The program's thread thereby keeps its modes, numbers and stack. A thread of `threading` would
    shift the names of the program's threads.
    """
    results: list[Result] = []
    errors: list[Exception] = []
    done = _thread.allocate_lock()
    done.acquire()

    def run() -> None:
        try:
            results.append(work())
        except Exception as error:  # noqa: BLE001  raised in the caller
            errors.append(error)
        finally:
            done.release()

    # Threads that torch starts from here must inherit neither name nor signal mask of the profiler.
    _native.start_thread_of_program(run)
    done.acquire()
    if errors:
        raise errors[0]
    return results[0]


class InternalThread:
    """A thread with the profiler's name that receives none of the program's signals."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work
        self._ended = _thread.allocate_lock()

    def start(self) -> bool:
        """Start the thread, once; False if the process may have no more threads (`NO_THREAD`)."""
        self._ended.acquire()
        try:
            _native.start_internal_thread(self._run)
        except RuntimeError:
            self._ended.release()
            return False
        return True

    def join(self) -> None:
        """Wait for the end of the thread, with a deadline; return at once if it was not started."""
        if self._ended.acquire(timeout=_LONGEST_JOIN_S):
            self._ended.release()

    def _run(self) -> None:
        try:
            self._work()
        finally:
            self._ended.release()
