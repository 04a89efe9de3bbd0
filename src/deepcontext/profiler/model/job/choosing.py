"""Which files of a folder are the ranks of its job: a run directory also holds other processes.

Reads every file once, for its run only. The rules are in `job_ranks.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from deepcontext.profiler.model.job.loading import Refused, load, nothing_left
from deepcontext.profiler.model.job_ranks import last_attempt, ranks_of
from deepcontext.profiler.model.run_info import ALL_RANKS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepcontext.profiler.model.job.engines import Engine
    from deepcontext.profiler.model.run_info import RunInfo

_FILES_PER_TASK: Final = 128


@dataclass(frozen=True, slots=True)
class Process:
    """A file and the run of its process."""

    name: str
    run: RunInfo


@dataclass(frozen=True, slots=True)
class Chosen:
    """The ranks of a folder.

    Attributes:
        names: files of ranks in their last attempt, and of ranks joined before; all files where none
            has a rank.
        others: number of processes that are not ranks.
        earlier: number of ranks of earlier attempts.
        refused: files that could not be read.
    """

    names: tuple[str, ...]
    others: int
    earlier: int
    refused: tuple[Refused, ...]


def choose(names: Sequence[str], engine: Engine) -> Chosen:
    """Return which files are ranks.

    Raises:
        UserError: no file can be read.
        EnvironmentProblem: a worker process ended.
    """
    tasks = [
        (engine.folder, tuple(names[start : start + _FILES_PER_TASK]))
        for start in range(0, len(names), _FILES_PER_TASK)
    ]
    found = [each for result in engine.in_order(_runs, tasks) for each in result]
    processes = [each for each in found if isinstance(each, Process)]
    joined = [each.name for each in processes if each.run.rank == ALL_RANKS]
    single = {each.name: each for each in processes if each.run.rank != ALL_RANKS}
    ranks = ranks_of(single)
    last = last_attempt(ranks)
    chosen = [*joined, *last] or list(single)
    refused = tuple(each for each in found if isinstance(each, Refused))
    if not chosen:
        raise nothing_left(len(names), refused)
    others = len(single) - len(ranks) if last or joined else 0
    return Chosen(tuple(chosen), others, len(ranks) - len(last), refused)


def _runs(task: tuple[str, tuple[str, ...]]) -> list[Process | Refused]:
    """Return the run of each file, whose relative names are of a folder; this happens in a worker."""
    folder, names = task
    found: list[Process | Refused] = []
    for name in names:
        profile = load(name, folder)
        if isinstance(profile, Refused):
            found.append(profile)
        else:
            found.append(Process(name, profile.run))
    return found
