"""Similar processes of a job: processes of one role, and processes that a long list shows as one row.

Does not read files. Processes are numbered by their place in `processes_of`'s list.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepcontext.profiler.summaries.processes import Process
    from deepcontext.profiler.summaries.roles import Role

# Up to this number, rows can be read one by one.
_FEWEST_BINNED: Final = 65
_BINS: Final = 24


@dataclass(frozen=True, slots=True)
class SimilarProcesses:
    """Several processes of one role below one parent.

    Attributes:
        role: their role.
        members: the processes, ascending.
        busiest: the process with the most processor time.
        typical: the process with the median of the processor times.
        bins: how many processes have each part of the range of processor times, the least first; empty
            for few processes.
        ends: number of processes by how they ended, without normal ends.
    """

    role: Role
    members: tuple[int, ...]
    busiest: int
    typical: int
    bins: tuple[int, ...]
    ends: Counter[str]


def by_role(processes: Sequence[Process]) -> dict[Role, list[int]]:
    """Return the processes of each role, roles by their first process."""
    found: dict[Role, list[int]] = {}
    for number, process in enumerate(processes):
        found.setdefault(process.role, []).append(number)
    return found


def similar_processes(processes: Sequence[Process], fewest: int) -> list[SimilarProcesses]:
    """Return the groups of at least `fewest` processes of one role below one parent."""
    of_parent: dict[tuple[int, Role], list[int]] = {}
    above: list[int] = []  # the last process at each depth
    for number, process in enumerate(processes):
        del above[process.depth :]
        parent = above[-1] if above else -1
        above.append(number)
        of_parent.setdefault((parent, process.role), []).append(number)
    return [
        _similar(processes, role, members)
        for (_, role), members in of_parent.items()
        if len(members) >= fewest
    ]


def _similar(processes: Sequence[Process], role: Role, members: Sequence[int]) -> SimilarProcesses:
    by_time = sorted(members, key=lambda number: processes[number].cpu_ns)
    times = [processes[number].cpu_ns for number in members]
    bins = np.histogram(times, _BINS)[0].tolist() if len(members) >= _FEWEST_BINNED else []
    return SimilarProcesses(
        role=role,
        members=tuple(members),
        busiest=by_time[-1],
        typical=by_time[(len(by_time) - 1) // 2],
        bins=tuple(bins),
        ends=Counter(processes[n].ended for n in members if processes[n].ended),
    )
