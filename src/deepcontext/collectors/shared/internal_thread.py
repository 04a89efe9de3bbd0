"""Threads of ours: one that runs something once, and one that stays."""

from __future__ import annotations

import _thread
from typing import TYPE_CHECKING, Final, TypeVar

from deepcontext import _native

if TYPE_CHECKING:
    from collections.abc import Callable

NO_THREAD: Final = "the process may have no more threads (ulimit -u, or a container's limit)"
Result = TypeVar("Result")


def run_in_own_thread(work: Callable[[], Result]) -> Result:
    """Return what `work` returns, or raise what it raises.

    The program's thread keeps its modes, numbers and stack as they are; a thread of `threading`
    would shift the names of the program's own threads.
    """
    results: list[Result] = []
    errors: list[Exception] = []
    done = _thread.allocate_lock()
    done.acquire()

    def run() -> None:
        try:
            results.append(work())
        except Exception as error:  # noqa: BLE001  it is the caller's
            errors.append(error)
        finally:
            done.release()

    _thread.start_new_thread(run, ())  # noqa: TID251  what torch starts here inherits no name
    done.acquire()
    if errors:
        raise errors[0]
    return results[0]


class OwnThread:
    """A thread under our name that takes none of the program's signals; `join` waits for its end."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work
        self._ended = _thread.allocate_lock()

    def start(self) -> bool:
        """Start it, once; False where the process may have no more threads (`NO_THREAD`)."""
        self._ended.acquire()
        try:
            _native.start_own_thread(self._run)
        except RuntimeError:
            self._ended.release()
            return False
        return True

    def join(self) -> None:
        """Wait for its end; returns at once where it was not started."""
        with self._ended:
            pass

    def _run(self) -> None:
        try:
            self._work()
        finally:
            self._ended.release()
