"""How a thread of the profiler is woken before its time."""

from __future__ import annotations

from _queue import Empty, SimpleQueue


class Wake:
    """Ends the wait of one thread.

    Unlike `threading.Event`, whose lock is not re-entrant, a signal handler may set it while the thread
    that it interrupts does.
    """

    def __init__(self) -> None:
        self._calls: SimpleQueue[None] = SimpleQueue()

    def set(self) -> None:
        """End the running wait, or the next one."""
        if self._calls.empty():
            self._calls.put(None)

    def wait(self, seconds: float) -> bool:
        """Wait at most so long; return whether the wait was ended."""
        try:
            self._calls.get(timeout=seconds)
        except Empty:
            return False
        return True
