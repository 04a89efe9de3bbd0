"""The processes of a job as a tree: role, share of the job's processor time, and which to show first.

Does not read files. Processes are in the order of the tree: a process, then its children by start.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from deepcontext.errors import UserError
from deepcontext.profiler.model.job_ranks import ranks_of
from deepcontext.profiler.model.parents import parents_of
from deepcontext.profiler.summaries.ends import ends_of
from deepcontext.profiler.summaries.roles import Role, roles

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.summaries.ends import End

_DIGITS: Final = re.compile(r"\d+")
_RANK: Final = re.compile(r"rank\s*(\d+)")


@dataclass(frozen=True, slots=True, eq=False)
class Process:
    """One process of a job.

    Attributes:
        profile: its profile.
        role: what it is for.
        depth: number of recorded processes above it.
        cpu_ns: processor time.
        share: share of the processor time of all recorded processes, 0 to 1.
        rank: number of the rank, None for a process that is not a rank.
        end: how the process ended, as far as it was seen.
    """

    profile: Profile
    role: Role
    depth: int
    cpu_ns: int
    share: float
    rank: int | None
    end: End

    @property
    def ended(self) -> str:
        """Return how the process ended, "" for a normal end."""
        return self.end.text

    @property
    def program(self) -> str:
        """Return the name that `multiprocessing` gave the process, or its command."""
        return self.profile.run.process_name or self.profile.run.shown_command

    @property
    def kind(self) -> tuple[str, str]:
        """Return what similar processes have in common."""
        return self.role.value, _DIGITS.sub("", self.program)


@dataclass(frozen=True, slots=True)
class Folded:
    """Similar processes that a short list leaves out.

    Attributes:
        role: role of all of them.
        count: number of processes.
        cpu_ns: sum of their processor time.
        share: share of the processor time of all recorded processes, 0 to 1.
        ends: number of processes by how they ended, without normal ends.
    """

    role: Role
    count: int
    cpu_ns: int
    share: float
    ends: Counter[str]


def processes_of(profiles: Sequence[Profile]) -> list[Process]:
    """Return the processes of a job, a parent before its children.

    Args:
        profiles: one for each process, ordered by start.
    """
    ranks = ranks_of(dict(enumerate(profiles)))
    role = roles(profiles)
    ends = ends_of(profiles)
    cpu = [p.run.cpu_user_ns + p.run.cpu_system_ns for p in profiles]
    children: dict[int, list[int]] = {}
    for n, parent in enumerate(parents_of([each.run for each in profiles])):
        children.setdefault(-1 if parent is None else parent, []).append(n)
    found: list[Process] = []
    waiting = [(n, 0) for n in reversed(children.get(-1, []))]
    while waiting:
        n, depth = waiting.pop()
        rank = profiles[n].run.rank if n in ranks else None
        share = cpu[n] / (sum(cpu) or 1)
        found.append(Process(profiles[n], role[n], depth, cpu[n], share, rank, ends[n]))
        waiting += [(child, depth + 1) for child in reversed(children.get(n, []))]
    return found


def busiest(processes: Sequence[Process]) -> Process:
    """Return the process with the most processor time that does work of its own, if there is one."""
    work = [each for each in processes if each.role not in {Role.LAUNCHER, Role.FORK_SERVER}]
    return max(work or processes, key=lambda each: each.cpu_ns)


def named(processes: Sequence[Process], name: str) -> Process:
    """Return the process that a user names by number (`123`) or rank (`rank0`), its last attempt.

    Raises:
        UserError: there is no such process; the message lists the processes.
    """
    rank = _RANK.fullmatch(name)
    for each in sorted(processes, key=lambda each: each.profile.run.start_unix_ns, reverse=True):
        number = each.rank if rank else each.profile.run.pid
        if str(number) == (str(int(rank[1])) if rank else name):
            return each
    known = ", ".join(
        f"rank{each.rank}" if each.rank is not None else str(each.profile.run.pid)
        for each in processes[:16]
    )
    raise UserError(
        f"no process '{name}': choose one of {known}{', ...' * (len(processes) > 16)}"  # noqa: PLR2004
    )


def shortened(processes: Sequence[Process], most: int) -> tuple[list[Process], list[Folded]]:
    """Return the processes for a list of about `most` rows, and the similar processes left out.

    The first processes of each kind stay, and the busiest of all.
    """
    if len(processes) <= most:
        return list(processes), []
    kinds = Counter(each.kind for each in processes)
    each_kind = max(1, most // len(kinds))
    seen: Counter[tuple[str, str]] = Counter()
    first = busiest(processes)
    shown: list[Process] = []
    left: dict[Role, list[Process]] = {}
    for each in processes:
        seen[each.kind] += 1
        if each is first or (seen[each.kind] <= each_kind and len(shown) < most):
            shown.append(each)
        else:
            left.setdefault(each.role, []).append(each)
    return shown, [_folded(role, group) for role, group in left.items()]


def _folded(role: Role, group: Sequence[Process]) -> Folded:
    return Folded(
        role=role,
        count=len(group),
        cpu_ns=sum(each.cpu_ns for each in group),
        share=sum(each.share for each in group),
        ends=Counter(each.ended for each in group if each.ended),
    )
