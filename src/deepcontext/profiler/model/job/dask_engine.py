"""Workers of a Dask cluster, which `dask:ADDRESS` or `dask:FILE.json` names."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from deepcontext.errors import EnvironmentProblem, UserError
from deepcontext.profiler.model.job.remote import Library, Remote, imported

if TYPE_CHECKING:
    from concurrent.futures import Executor

_WORKERS_TIMEOUT_S: Final = 60  # batch systems start workers after the scheduler


def connect(address: str) -> Executor:
    """Return an executor over the workers.

    Args:
        address: of the scheduler, or the file that it wrote for its clients.

    Raises:
        UserError: there is no such file.
        EnvironmentProblem: Dask is not installed, or no scheduler answers, or it has no workers.
    """
    distributed = imported("distributed", engine="dask", package="distributed")
    if address.endswith(".json") and not Path(address).is_file():
        raise UserError(
            f"cannot read the scheduler file '{address}': No such file; start the scheduler with "
            f"'dask scheduler --scheduler-file {address}'"
        )
    where = {"scheduler_file" if address.endswith(".json") else "address": address}
    try:
        client = distributed.Client(**where, set_as_default=False)
    except (OSError, ValueError) as error:
        raise EnvironmentProblem(
            f"cannot reach the Dask scheduler '{address}': {error}; check the address, and that the "
            "scheduler runs"
        ) from error
    try:
        client.wait_for_workers(1, timeout=_WORKERS_TIMEOUT_S)
    except TimeoutError as error:
        client.close()
        raise EnvironmentProblem(
            f"the Dask scheduler '{address}' has had no worker for {_WORKERS_TIMEOUT_S} s; start "
            f"workers with 'dask worker {address}'"
        ) from error
    return Remote(
        Library(
            name=f"dask:{address}",
            workers=sum(client.nthreads().values()),
            submit=client.get_executor(pure=False).submit,
            close=client.close,
            lost=(distributed.KilledWorker, distributed.comm.CommClosedError),
        )
    )
