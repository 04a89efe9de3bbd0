"""Processes that `mpiexec` or `srun` started; the first one merges, the others are its workers."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from deepcontext.errors import UserError
from deepcontext.profiler.model.job.remote import Library, Remote, imported

if TYPE_CHECKING:
    from concurrent.futures import Executor

_POOL: Final = "mpi4py.futures"
_LEAST: Final = 2
_START: Final = (
    "start it as 'mpiexec -n N python -m mpi4py.futures -m deepcontext merge --engine mpi ...'"
)


def connect() -> Executor:
    """Return an executor over the other processes.

    Raises:
        UserError: the processes were not started as workers.
        EnvironmentProblem: mpi4py, or the library of MPI, is not installed.
    """
    # Otherwise each process would be the first and merge everything itself.
    if _POOL not in sys.orig_argv:
        raise UserError(f"engine 'mpi' has no workers; {_START}")
    mpi = imported("mpi4py.MPI", engine="mpi", package="mpi4py")
    processes = mpi.COMM_WORLD.Get_size()
    if processes < _LEAST:
        raise UserError(
            f"engine 'mpi' has no workers, found 1 process; {_START} with N of 2 or more"
        )
    pool = imported(_POOL, engine="mpi", package="mpi4py").MPIPoolExecutor()
    return Remote(
        Library(name="mpi", workers=processes - 1, submit=pool.submit, close=pool.shutdown)
    )
