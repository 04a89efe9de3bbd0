"""Which process of a job this is, according to its launcher.

Imports nothing but the standard library: it is loaded into the profiled program.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

# (rank, number of ranks): torchrun and launchers like it, Open MPI, MPICH and Intel MPI, Slurm. The
# launcher nearest to the program comes first, because Slurm may have started torchrun.
_VARIABLES: Final = (
    ("RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
)


@dataclass(frozen=True, slots=True)
class Rank:
    """One process of a job.

    Attributes:
        number: the process, from 0.
        of: number of processes, at least 2.
    """

    number: int
    of: int

    def name(self, path: Path) -> Path:
        """Return the path that this process writes to in place of `path`: ``a.rank1.dcprof``."""
        return path.with_name(f"{path.stem}.rank{self.number}{path.suffix}")


def current_rank(environment: Mapping[str, str] = os.environ) -> Rank | None:
    """Return what the launcher says, None for a job of one process or no launcher."""
    for number, of in _VARIABLES:
        texts = environment.get(number, ""), environment.get(of, "")
        if all(text.isdecimal() for text in texts):
            rank = Rank(int(texts[0]), int(texts[1]))
            return rank if rank.of > 1 else None
    return None
