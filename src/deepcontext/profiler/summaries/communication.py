"""What the ranks of a job exchanged: by operation and process group, transfer and waiting apart.

From the collectives that `rank_collectives.py` compares; bytes are not known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from deepcontext.profiler.summaries import rank_collectives

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile_model import ProfileModel as Profile
    from deepcontext.profiler.summaries.rank_collectives import Comparison


@dataclass(frozen=True, slots=True)
class Exchange:
    """One operation in one group. Where only some were compared, figures are estimates for all.

    Attributes:
        operation: operator of torch's namespace "c10d", without trailing underscore: "allreduce".
        group: torch's name of the group.
        members: its ranks.
        calls: number of calls of each member.
        transfer_ns: the shortest durations, which are those of the ranks that came last.
        waiting_ns: what the others spent beyond, mean over the members.
        last: rank that came last most often.
        last_share: how often, of the collectives.
    """

    operation: str
    group: str
    members: tuple[int, ...]
    calls: int
    transfer_ns: int
    waiting_ns: int
    last: int
    last_share: float


def by_operation(profile: Profile) -> tuple[Exchange, ...]:
    """Return what was exchanged, the longest first; empty where collectives cannot be compared.

    Raises:
        ProfileDataError: the section cannot be read.
    """
    found = rank_collectives.compare(profile).groups
    rows = [_exchange(group, str(name)) for group in found for name in np.unique(group.operation)]
    return tuple(sorted(rows, key=lambda row: -(row.transfer_ns + row.waiting_ns)))


def _exchange(group: Comparison, operation: str) -> Exchange:
    columns = group.operation == operation
    duration, waiting = group.duration_ns[:, columns], group.waiting_ns[:, columns]
    factor = group.called / len(group.number)
    last = np.bincount(duration.argmin(axis=0), minlength=len(group.group.members))
    return Exchange(
        operation=operation.strip("_"),
        group=group.group.name,
        members=group.group.members,
        calls=round(factor * int(columns.sum())),
        transfer_ns=round(factor * float(duration.min(axis=0).sum())),
        waiting_ns=round(factor * float(waiting.sum(axis=1).mean())),
        last=group.group.members[int(last.argmax())],
        last_share=float(last.max() / columns.sum()),
    )
