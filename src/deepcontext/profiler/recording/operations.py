"""The operations of a session, and the rule for calls that interrupt or contain one.

Start, snapshot, stop, and what collectors do after an import are operations. They run one at a time,
in the order in which they were called, each on a thread of the profiler while its caller waits
(`native/python/operations.h`). So:

- A signal handler interrupts the wait, never an operation. What it calls comes after the operation
  that it interrupts: a handler that stops and exits finds that a start, snapshot or stop is complete.
- An exception that a handler raises, such as KeyboardInterrupt, is raised when the operation is
  complete. A second one is raised at once, and the operation is completed in the background.
- A call from inside an operation, for example of a finalizer, is refused with SessionError.
- The watcher writes no snapshot while there is an operation.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, TypeVar

from deepcontext import _native
from deepcontext.errors import SessionError

if TYPE_CHECKING:
    from collections.abc import Callable

Result = TypeVar("Result")


def run(work: Callable[[], Result]) -> Result:
    """Run `work` in its turn, or at once if an operation calls this."""
    return _native.run_operation(lambda: _unlisted(work))


def run_exclusively(work: Callable[[], Result]) -> Result:
    """Run `work` in its turn.

    Raises:
        SessionError: when an operation that is exclusive calls this.
    """
    if _native.is_in_operation():
        raise SessionError(
            "the profiler's own work led to this call, for example through a finalizer: sessions cannot "
            "be started, stopped or written from there"
        )
    return _native.run_operation(lambda: _unlisted(work), is_exclusive=True)


def _unlisted(work: Callable[[], Result]) -> Result:
    """Run `work`; if it asks `threading` for its thread, as logging does, the program sees no trace of it.

    Before CPython 3.13, `threading` never forgets a thread that it has not started.
    """
    thread = threading.get_ident()
    known: dict[int, threading.Thread] = threading._active  # type: ignore[attr-defined]  # noqa: SLF001
    is_known = thread in known
    try:
        return work()
    finally:
        if not is_known:
            known.pop(thread, None)
