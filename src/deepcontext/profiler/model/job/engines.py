"""Where a fold runs: `--engine processes:N`.

An engine keeps an `Executor` busy, and replaces it where a worker was killed. Workers are started afresh,
because a fork of a process with threads may hang. Processes are the only engine so far; others need an
adapter here.
"""

from __future__ import annotations

import os
import signal
from collections import deque
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from multiprocessing import get_context
from typing import TYPE_CHECKING, Final, TypeVar

from deepcontext.errors import EnvironmentProblem, UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any, Self

T = TypeVar("T")
Task = TypeVar("Task")
_PROCESSES: Final = "processes"
_MOST: Final = 1024
_MOST_KILLS: Final = 2  # without a result between them
_KILLED: Final = (
    "a worker process was killed again and again, perhaps because the memory was exhausted; use fewer "
    "workers: --engine processes:1"
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
    """Runs tasks on an executor, and on another one where a worker was killed.

    Args:
        make: makes an executor.
        workers: number of tasks that it runs at once.

    Attributes:
        restarts: how often the executor was replaced.
    """

    def __init__(self, make: Callable[[], Executor], workers: int) -> None:
        self.restarts = 0
        self._make = make
        self._workers = workers
        self._executor = make()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._executor.shutdown(cancel_futures=True)

    def in_order(self, function: Callable[[Task], T], tasks: Iterable[Task]) -> Iterator[T]:
        """Yield the result of each task, in the order of the tasks.

        Few tasks are under way, because results that wait for an earlier one are held in memory. Where
        a worker is killed, unfinished tasks are run again.

        Raises:
            EnvironmentProblem: workers are killed again and again.
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
        name: "processes" or "processes:N".
        tasks: number of tasks; no more workers are started.

    Raises:
        UserError: there is no such engine, or its number is invalid.
    """
    kind, colon, number = name.partition(":")
    if kind != _PROCESSES:
        raise UserError(f"unknown engine '{name}'; use '{_PROCESSES}' or '{_PROCESSES}:N'")
    if colon and not (number.isdecimal() and 0 < int(number) <= _MOST):
        raise UserError(f"'{name}' names no number of processes; N is a number from 1 to {_MOST}")
    workers = min(int(number) if colon else len(os.sched_getaffinity(0)), tasks)
    if workers <= 1:
        return Engine(ThisProcess, 1)
    return Engine(lambda: _processes(workers), workers)


def _processes(workers: int) -> Executor:
    return ProcessPoolExecutor(
        workers, mp_context=get_context("spawn"), initializer=_leave_interrupts_to_the_parent
    )


def _leave_interrupts_to_the_parent() -> None:
    """Ignore Ctrl-C in a worker, which would print a traceback; the parent ends the workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
