"""The end of a child process of `multiprocessing`.

Before CPython 3.13 a forked child runs no exit handlers. Since then children run them, but that of
`multiprocessing`, which calls the program's finalizers, is the first registered, so the last to run.

Does not import `multiprocessing`: a process that has not imported it is not one of its children.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from deepcontext.profiler.format.own_os import os

if TYPE_CHECKING:
    from collections.abc import Callable

# Below all priorities in the standard library and all sensible ones in programs, so that other
# finalizers run first and are measured.
_LAST: Final = -1_000_000
_FINALIZERS_COME_LAST: Final = sys.version_info >= (3, 13)


class ChildEnd:
    """Calls a function when a process ends that is a child of `multiprocessing`.

    Forked children, also those of its fork server and of `concurrent.futures`, end by `os._exit`.
    Spawned ones end as any program does; before CPython 3.13 they are left to their exit handlers.
    """

    def __init__(self, callback: Callable[[], None]) -> None:
        """Make one that waits for nothing yet.

        Args:
            callback: called at most once a process.
        """
        self._callback = callback
        self._asked_in: int | None = None  # process
        self._waits_in: int | None = None  # process

    @property
    def waits(self) -> bool:
        """Whether the end of this process calls the callback, so that an exit handler need not."""
        return self._waits_in == os.getpid()

    def wait(self, *, is_fork: bool) -> None:
        """Call the callback when this process ends, if it is a child that needs it.

        Args:
            is_fork: this process is known to be a fork. A program's default start method does not say so.
        """
        if self._asked_in == os.getpid():
            return
        self._asked_in = os.getpid()
        process = sys.modules.get("multiprocessing.process")
        util = sys.modules.get("multiprocessing.util")
        if process is None or util is None or "multiprocessing.context" not in sys.modules:
            return
        if getattr(process.current_process(), "_inheriting", False):
            # A child of the fork server may import a framework while it reads its task. Callbacks that
            # are registered now are dropped before the task runs, except for functions after a fork.
            util.register_after_fork(self, lambda end: end._register(is_fork=True))  # noqa: SLF001  its own
        self._register(is_fork=is_fork)

    def _register(self, *, is_fork: bool) -> None:
        process = sys.modules["multiprocessing.process"]
        context = sys.modules["multiprocessing.context"]
        if process.parent_process() is None:
            return
        if (
            is_fork
            or _FINALIZERS_COME_LAST
            or context._default_context.get_start_method() != "spawn"  # noqa: SLF001  as its own modules do
        ):
            self._waits_in = os.getpid()
            sys.modules["multiprocessing.util"].Finalize(None, self._callback, exitpriority=_LAST)
