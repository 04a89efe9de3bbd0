"""Threads of the profiler: one that runs a function once, and one that stays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from deepcontext import _native

if TYPE_CHECKING:
    from collections.abc import Callable

NO_THREAD: Final = "the process may have no more threads (ulimit -u, or a container's limit)"
_LONGEST_JOIN_S: Final = 30.0  # a call of a framework, which it may be in, may hang
_BETWEEN_LOOKS_S: Final = 3600.0
Result = TypeVar("Result")


def run_in_internal_thread(work: Callable[[], Result]) -> Result:
    """Run `work` on a thread of the profiler; return what it returns or raise what it raises.

    The program's thread thereby keeps its modes, numbers and stack. A thread of `threading` would
    shift the names of the program's threads.

    Raises:
        RuntimeError: the process may have no more threads.
    """
    results: list[Result] = []
    errors: list[Exception] = []

    def run() -> None:
        try:
            results.append(work())
        except Exception as error:  # noqa: BLE001  raised in the caller
            errors.append(error)

    # Threads that torch starts from here must inherit neither name nor signal mask of the profiler.
    thread = _native.PythonThread()
    if not thread.start_as_caller(run):
        raise RuntimeError(NO_THREAD)
    while not thread.join(_BETWEEN_LOOKS_S):
        pass
    if errors:
        raise errors[0]
    return results[0]


class InternalThread:
    """A thread with the profiler's name that receives none of the program's signals."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work
        self._thread = _native.PythonThread()

    def start(self) -> bool:
        """Start the thread, once; False if the process may have no more threads (`NO_THREAD`)."""
        return self._thread.start_as_internal(self._work)

    def join(self) -> None:
        """Wait for the end of the thread, with a deadline; return at once if it was not started."""
        self._thread.join(_LONGEST_JOIN_S)
