"""Open files for the profiler in a process that has no free descriptor (EMFILE).

Does not raise limits. Invariant: no file of the program is closed, and none of its descriptors reused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from deepcontext import _native

if TYPE_CHECKING:
    from collections.abc import Callable

Result = TypeVar("Result")


def with_descriptors(work: Callable[[], Result]) -> Result:
    """Run `work`; on a thread with its own table of descriptors if this process has used up its own.

    Args:
        work: uses no open file but the standard streams.
    """
    if _native.has_free_descriptor():
        return work()
    results: list[Result] = []
    errors: list[Exception] = []

    def run() -> None:
        try:
            results.append(work())
        except Exception as error:  # noqa: BLE001  raised in the caller
            errors.append(error)

    if not _native.run_with_own_descriptors(run):
        return work()
    if errors:
        raise errors[0]
    return results[0]
