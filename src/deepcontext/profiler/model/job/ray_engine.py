"""Workers of a Ray cluster, which `ray:ADDRESS` names; `ray:local` starts some on this machine."""

from __future__ import annotations

import os
import socket
import sys
from contextlib import ExitStack, redirect_stdout
from typing import TYPE_CHECKING, Any, Final

from deepcontext.errors import EnvironmentProblem
from deepcontext.profiler.model.job.remote import Library, Remote, imported

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor, Future

_LOCAL: Final = "local"
_ANSWER_TIMEOUT_S: Final = 10


def connect(address: str) -> Executor:
    """Return an executor over the workers.

    Args:
        address: as `ray.init` takes it: "auto", "local", HOST:PORT.

    Raises:
        EnvironmentProblem: Ray is not installed, or no cluster answers.
    """
    ray = imported("ray", engine="ray", package="ray")
    _check_answers(address)
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    if address == _LOCAL:
        # Ray would report usage statistics, but the user did not choose to start Ray here.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        options |= {"include_dashboard": False, "num_cpus": len(os.sched_getaffinity(0))}
    # Ray prints messages about workers to standard output, which is for the command's result.
    printing = ExitStack()
    printing.enter_context(redirect_stdout(sys.stderr))
    try:
        ray.init(address=address, **options)
    except (OSError, ValueError, RuntimeError) as error:
        printing.close()
        raise _unreachable(address, error) from error
    printing.callback(ray.shutdown)
    errors = ray.exceptions

    def submit(function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        future: Future[Any] = ray.remote(function).remote(*arguments).future()
        return future

    return Remote(
        Library(
            name=f"ray:{address}",
            workers=int(ray.cluster_resources().get("CPU", 1)),
            submit=submit,
            close=printing.close,
            lost=(errors.WorkerCrashedError, errors.OutOfMemoryError, errors.NodeDiedError),
            cause=lambda error: getattr(error, "cause", None) or error,
        )
    )


def _check_answers(address: str) -> None:
    """Check that a server listens at HOST:PORT, because Ray would try for many minutes.

    Raises:
        EnvironmentProblem: nothing does.
    """
    host, colon, port = address.rpartition(":")
    if not colon or "/" in host or not port.isdecimal():
        return
    try:
        socket.create_connection((host, int(port)), timeout=_ANSWER_TIMEOUT_S).close()
    except (OSError, OverflowError) as error:
        raise _unreachable(address, error) from error


def _unreachable(address: str, error: Exception) -> EnvironmentProblem:
    reason = " ".join(str(error).split())
    return EnvironmentProblem(
        f"cannot reach the Ray cluster '{address}': {reason}; check the address, and that Ray runs"
    )
