"""Adapts an executor of another library to `Engine`: names lost workers and missing packages.

Does not import any of these libraries; each library has its own file (`dask_engine.py` and others).
"""

from __future__ import annotations

import importlib
from concurrent.futures import BrokenExecutor, Executor, Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from deepcontext.errors import EnvironmentProblem

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
# Errors of a worker that cannot load a task: the package is missing, or has another version.
_CANNOT_LOAD: Final = (ImportError, AttributeError)


@dataclass(frozen=True, slots=True)
class Library:
    """What an adapter says about its library.

    Attributes:
        name: the engine's name.
        workers: number of tasks that the workers run at once.
        submit: runs a call on a worker.
        close: ends the connection.
        lost: errors of a task whose worker was killed.
        cause: returns the error that a task raised, from the error of its future.
    """

    name: str
    workers: int
    submit: Callable[..., Future[Any]]
    close: Callable[[], None]
    lost: tuple[type[BaseException], ...] = ()
    cause: Callable[[BaseException], BaseException] = lambda error: error


class Remote(Executor):
    """An executor over the workers of a library."""

    def __init__(self, library: Library) -> None:
        self.workers = max(library.workers, 1)
        self._library = library

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Run a call on a worker."""
        outer: Future[T] = Future()
        inner = self._library.submit(fn, *args, **kwargs)
        inner.add_done_callback(lambda done: self._finish(done, outer))
        return outer

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002
        """End the connection; workers that ran before the connection keep running."""
        del wait, cancel_futures
        self._library.close()

    def _finish(self, done: Future[Any], outer: Future[Any]) -> None:
        if not outer.set_running_or_notify_cancel():
            return
        if done.cancelled():
            outer.set_exception(BrokenExecutor(f"{self._library.name} has cancelled a task"))
            return
        error = done.exception()
        if error is None:
            outer.set_result(done.result())
        else:
            outer.set_exception(self._explained(error))

    def _explained(self, error: BaseException) -> BaseException:
        if isinstance(error, self._library.lost):
            return BrokenExecutor(str(error))
        cause = self._library.cause(error)
        if not isinstance(cause, _CANNOT_LOAD):
            return cause
        return EnvironmentProblem(
            f"the workers of '{self._library.name}' cannot run a task ({cause}); install this version of "
            "deepcontext-profiler for them"
        )


def imported(module: str, *, engine: str, package: str) -> Any:
    """Return a module of a library.

    Raises:
        EnvironmentProblem: it is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise EnvironmentProblem(
            f"engine '{engine}' needs the package {package}, which cannot be loaded ({error}); run "
            f"'pip install \"deepcontext-profiler[{engine}]\"'"
        ) from error
