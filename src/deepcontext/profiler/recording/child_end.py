"""The end of a child process of `multiprocessing`, which may run no exit handlers.

Does not import `multiprocessing`: a process that has not imported it is not one of its children.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

# Below all priorities in the standard library and all sensible ones in programs, so that other
# finalizers run first and are measured.
_LAST: Final = -1_000_000


def call_at_end_of_child(callback: Callable[[], None], *, is_fork: bool) -> None:
    """Call `callback` when this process ends, if it is a forked child of `multiprocessing`.

    Forked children, also those of its fork server and of `concurrent.futures`, end by `os._exit`.
    Spawned ones end as any program does, with their exit handlers.

    Args:
        callback: called at most once.
        is_fork: this process is known to be a fork. A program's default start method does not say so.
    """
    process = sys.modules.get("multiprocessing.process")
    util = sys.modules.get("multiprocessing.util")
    context = sys.modules.get("multiprocessing.context")
    if process is None or util is None or context is None:
        return
    if getattr(process.current_process(), "_inheriting", False):
        # A child of the fork server may import a framework while it reads its task. Callbacks that
        # are registered now are dropped before the task runs, except for functions after a fork.
        util.register_after_fork(
            call_at_end_of_child, lambda function: function(callback, is_fork=True)
        )
    if process.parent_process() is None:
        return
    if is_fork or context._default_context.get_start_method() != "spawn":  # noqa: SLF001  as its own modules do
        util.Finalize(None, callback, exitpriority=_LAST)
