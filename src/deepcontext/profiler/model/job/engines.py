"""Where a fold runs: `--engine processes:N`, or workers of Dask, Ray or MPI.

An engine keeps an `Executor` busy, and replaces the executor if a worker was killed. Processes are
spawned, because a fork of a process with threads may hang. Each other executor is in a separate
file with a function `connect` (`remote.py`).
"""

from __future__ import annotations

import importlib
import os
import signal
from collections import deque
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from deepcontext.errors import EnvironmentProblem, UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any, Self

T = TypeVar("T")
Task = TypeVar("Task")
_PROCESSES: Final = "processes"
# Engine -> whether an address follows, and the module whose `connect` makes its executor.
_REMOTE: Final = {
    "dask": (True, "deepcontext.profiler.model.job.dask_engine"),
    "ray": (True, "deepcontext.profiler.model.job.ray_engine"),
    "mpi": (False, "deepcontext.profiler.model.job.mpi_engine"),
}
ENGINES: Final = (
    "'processes', 'processes:N', 'dask:ADDRESS', 'dask:FILE.json', 'ray:ADDRESS' or 'mpi'"
)
_MOST: Final = 1024
_MOST_KILLS: Final = 2  # without a result between them
_KILLED: Final = (
    "a worker process was killed repeatedly, perhaps because the memory was exhausted; use fewer workers: "
    "--engine processes:1"
)


class ThisProcess(Executor):
    """Runs each call at once, in the calling thread."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Return the call's result, or its exception, as a future."""
        future: Future[T] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001  handed to the caller, as a pool does
            future.set_exception(error)
        return future


class Engine:
    """Runs tasks on an executor, and on a new executor after a worker was killed.

    Args:
        make: makes an executor.
        workers: number of tasks that it runs at once; None: the `workers` of a `Remote` executor.

    Attributes:
        restarts: how often the executor was replaced.
        folder: folder of relative names for workers that may be in another one; "" where they are
            in the folder of this process.
    """

    def __init__(self, make: Callable[[], Executor], workers: int | None) -> None:
        self.restarts = 0
        self.folder = "" if workers else str(Path.cwd())
        self._make = make
        self._executor = make()
        self._workers = workers or int(getattr(self._executor, "workers", 1))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._executor.shutdown(cancel_futures=True)

    def in_order(self, function: Callable[[Task], T], tasks: Iterable[Task]) -> Iterator[T]:
        """Yield the result of each task, in the order of the tasks.

        Only a few tasks run at once, because results that wait for an earlier result are held in
        memory. If a worker is killed, unfinished tasks are run again.

        Raises:
            EnvironmentProblem: workers are killed repeatedly.
        """
        waiting: deque[tuple[Task, Future[T]]] = deque()
        left = deque(tasks)
        kills = 0
        try:
            while waiting or left:
                try:
                    self._submit(function, left, waiting)
                    result = waiting[0][1].result()
                except BrokenExecutor as error:
                    kills += 1
                    if kills > _MOST_KILLS:
                        raise EnvironmentProblem(_KILLED) from error
                    left.extendleft(task for task, _ in reversed(waiting))
                    waiting.clear()
                    self._restart()
                    continue
                kills = 0
                waiting.popleft()
                yield result
        finally:
            for _, future in waiting:
                future.cancel()

    def _submit(
        self,
        function: Callable[[Task], T],
        left: deque[Task],
        waiting: deque[tuple[Task, Future[T]]],
    ) -> None:
        while left and len(waiting) < 2 * self._workers - 1:
            future = self._executor.submit(function, left[0])
            waiting.append((left.popleft(), future))

    def _restart(self) -> None:
        self._executor.shutdown()
        self._executor = self._make()
        self.restarts += 1


def engine_of(name: str, tasks: int) -> Engine:
    """Return the engine of a name.

    Args:
        name: one of `ENGINES`.
        tasks: number of tasks; no more processes are started.

    Raises:
        UserError: there is no such engine, or its number or address is invalid.
        EnvironmentProblem: its package is not installed, or its workers cannot be reached.
    """
    check_engine(name)
    kind, _, rest = name.partition(":")
    if kind in _REMOTE:
        needs_address, module = _REMOTE[kind]
        arguments = (rest,) if needs_address else ()
        return Engine(lambda: importlib.import_module(module).connect(*arguments), None)
    workers = min(int(rest) if rest else len(os.sched_getaffinity(0)), tasks)
    if workers <= 1:
        return Engine(ThisProcess, 1)
    return Engine(lambda: _processes(workers), workers)


def check_engine(name: str) -> None:
    """Check the name of an engine.

    Raises:
        UserError: there is no such engine, or its number or address is invalid.
    """
    kind, colon, rest = name.partition(":")
    needs_address, _ = _REMOTE.get(kind, (False, ""))
    if kind == _PROCESSES:
        if colon and not (rest.isdecimal() and 0 < int(rest) <= _MOST):
            raise UserError(
                f"'{name}' names no number of processes; N is a number from 1 to {_MOST}"
            )
    elif kind not in _REMOTE or (colon and not needs_address):
        raise UserError(f"unknown engine '{name}'; use {ENGINES}")
    elif needs_address and not rest:
        raise UserError(f"engine '{kind}' needs an address, as in '{kind}:ADDRESS'; use {ENGINES}")


def _processes(workers: int) -> Executor:
    return ProcessPoolExecutor(
        workers, mp_context=get_context("spawn"), initializer=_leave_interrupts_to_the_parent
    )


def _leave_interrupts_to_the_parent() -> None:
    """Ignore Ctrl-C in a worker, which would print a traceback; the parent ends the workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
