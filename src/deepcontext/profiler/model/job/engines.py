"""Where a fold runs: `--engine processes:N`.

An engine is an `Executor`. Workers are started afresh, because a fork of a process with threads may
hang. Processes are the only engine so far; others need an adapter here.
"""

from __future__ import annotations

import os
import signal
from collections import deque
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from typing import TYPE_CHECKING, Final, TypeVar

from deepcontext.errors import EnvironmentProblem, UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

T = TypeVar("T")
Task = TypeVar("Task")
_PROCESSES: Final = "processes"
_MOST: Final = 1024


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


@dataclass(frozen=True, slots=True)
class Engine:
    """Where a fold runs.

    Attributes:
        executor: runs the tasks.
        workers: number of tasks at once.
    """

    executor: Executor
    workers: int

    def in_order(self, function: Callable[[Task], T], tasks: Sequence[Task]) -> Iterator[T]:
        """Yield the result of each task, in the order of the tasks.

        Few tasks are under way, because results that wait for an earlier one are held in memory.

        Raises:
            EnvironmentProblem: a worker process ended.
        """
        waiting: deque[Future[T]] = deque()
        left = deque(tasks)
        try:
            while waiting or left:
                while left and len(waiting) < 2 * self.workers - 1:
                    waiting.append(self.executor.submit(function, left.popleft()))
                yield waiting.popleft().result()
        except BrokenExecutor as error:
            raise EnvironmentProblem(
                "a worker process ended in the middle, perhaps because the memory was exhausted; "
                "use fewer workers: --engine processes:1"
            ) from error
        finally:
            for future in waiting:
                future.cancel()


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
        return Engine(ThisProcess(), 1)
    pool = ProcessPoolExecutor(
        workers, mp_context=get_context("spawn"), initializer=_leave_interrupts_to_the_parent
    )
    return Engine(pool, workers)


def _leave_interrupts_to_the_parent() -> None:
    """Ignore Ctrl-C in a worker, which would print a traceback; the parent ends the workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
