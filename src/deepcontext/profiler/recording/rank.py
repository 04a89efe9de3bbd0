"""Which process of a job this is, according to its launcher.

A framework knows the rank with more certainty; it is asked first when a profile is written
(`RankSource`). Imports nothing but the standard library: it is loaded into the profiled program.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


class _Launcher(NamedTuple):
    """The variables that one kind of launcher sets; "" where it sets none."""

    rank: str
    ranks: str
    local_rank: str = ""
    local_ranks: str = ""
    attempt: str = ""
    needs: str = ""  # without this variable, the others do not count


# The launcher nearest to the program comes first, because Slurm may have started torchrun.
_LAUNCHERS: Final = (
    # torchrun and launchers like it
    _Launcher("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "TORCHELASTIC_RESTART_COUNT"),
    # Open MPI, MVAPICH
    _Launcher(
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_LOCAL_RANK",
        "OMPI_COMM_WORLD_LOCAL_SIZE",
    ),
    _Launcher(
        "MV2_COMM_WORLD_RANK",
        "MV2_COMM_WORLD_SIZE",
        "MV2_COMM_WORLD_LOCAL_RANK",
        "MV2_COMM_WORLD_LOCAL_SIZE",
    ),
    # MPICH, Intel MPI
    _Launcher("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
    # In a batch script, Slurm also sets the first two variables, but there they are not a rank.
    _Launcher(
        "SLURM_PROCID",
        "SLURM_NTASKS",
        "SLURM_LOCALID",
        attempt="SLURM_RESTART_COUNT",
        needs="SLURM_STEP_ID",
    ),
    _Launcher("FLUX_TASK_RANK", "FLUX_JOB_SIZE", "FLUX_TASK_LOCAL_ID"),
)


@dataclass(frozen=True, slots=True)
class Rank:
    """One process of a job.

    Attributes:
        number: the process, from 0.
        of: number of processes, at least 2.
        source: origin of the rank: a variable of the launcher, or a framework.
    """

    number: int
    of: int
    source: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class LocalRank:
    """Where a launcher has put a process; 0 means unknown.

    Attributes:
        attempt: how often the launcher restarted the ranks before.
        number: the process among the ranks of its machine, from 0.
        of: number of ranks of the machine.
    """

    attempt: int = 0
    number: int = 0
    of: int = 0


def current_rank(environment: Mapping[str, str] = os.environ) -> Rank | None:
    """Return what the launcher says, None for a job of one process or no launcher."""
    launcher = _launcher(environment)
    if launcher is None:
        return None
    rank = Rank(int(environment[launcher.rank]), int(environment[launcher.ranks]), launcher.rank)
    return rank if rank.of > 1 else None


def local_rank(environment: Mapping[str, str] = os.environ) -> LocalRank:
    """Return what the launcher says about this process on its machine."""
    launcher = _launcher(environment)
    if launcher is None:
        return LocalRank()
    texts = (launcher.attempt, launcher.local_rank, launcher.local_ranks)
    return LocalRank(*(_number(environment.get(name, "")) for name in texts))


def may_be_restarted(environment: Mapping[str, str]) -> bool:
    """Return whether torchrun will start the ranks again if this attempt fails."""
    attempts = ("TORCHELASTIC_RESTART_COUNT", "TORCHELASTIC_MAX_RESTARTS")
    done, most = (_number(environment.get(name, "")) for name in attempts)
    return done < most


def _launcher(environment: Mapping[str, str]) -> _Launcher | None:
    for launcher in _LAUNCHERS:
        if launcher.needs and launcher.needs not in environment:
            continue
        names = (launcher.rank, launcher.ranks)
        if all(environment.get(name, "").isdecimal() for name in names):
            return launcher
    return None


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else 0
