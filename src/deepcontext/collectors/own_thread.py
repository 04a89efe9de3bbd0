"""Run something once on a thread that the program does not see."""

from __future__ import annotations

import _thread
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

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
