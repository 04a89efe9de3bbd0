"""What the ranks of a job exchanged: by operation, process group and size, transfer and waiting apart.

From the collectives that `rank_collectives.py` compares. Bandwidths are those of nccl-tests: bytes of the
larger side by the time of the transfer, and what a link carries if the algorithm is a ring.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.profiler.summaries import rank_collectives

if TYPE_CHECKING:
    import numpy.typing as npt

    from deepcontext.profiler.model.profile_model import ProfileModel as Profile
    from deepcontext.profiler.summaries.rank_collectives import Comparison

    Ints = npt.NDArray[np.int64]

UNKNOWN: Final = -1.0
# Operations in which each member has its part already.
_OF_PARTS: Final = ("allgather", "reducescatter", "alltoall")


@dataclass(frozen=True, slots=True)
class Exchange:
    """One operation in one group. Where only some were compared, figures are estimates for all.

    Attributes:
        operation: operator of torch's namespace "c10d", without trailing underscore: "allreduce". Or an
            HLO opcode: "all-reduce".
        group: torch's name of the group, or the name of a jitted function.
        is_function: whether the collectives are those of a jitted function.
        members: its ranks.
        calls: number of calls of each member.
        transfer_ns: the shortest durations, which are those of the ranks that came last.
        waiting_ns: what the others spent beyond, mean over the members.
        exposed_share: part of the durations in which the members waited, or in which their devices
            computed nothing; -1 where unknown. The rest ran beside computation.
        last: rank that came last most often.
        last_share: how often, of the collectives.
        size_bytes: mean of one call; 0 where unknown. Calls whose sizes lie between the same powers of
            two are one row.
        bytes_per_s: algorithm bandwidth, 0 where unknown.
        bus_bytes_per_s: bus bandwidth, 0 where unknown.
    """

    operation: str
    group: str
    is_function: bool
    members: tuple[int, ...]
    calls: int
    transfer_ns: int
    waiting_ns: int
    exposed_share: float
    last: int
    last_share: float
    size_bytes: int
    bytes_per_s: float
    bus_bytes_per_s: float


def by_operation(profile: Profile) -> tuple[Exchange, ...]:
    """Return what was exchanged, the longest first; empty where collectives cannot be compared.

    Raises:
        ProfileDataError: the section cannot be read.
    """
    found = rank_collectives.compare(profile).groups
    rows = [
        row
        for group in found
        for operation in np.unique(group.operation).tolist()
        for row in _of_operation(group, str(operation))
    ]
    return tuple(sorted(rows, key=lambda row: -(row.transfer_ns + row.waiting_ns)))


def _of_operation(group: Comparison, operation: str) -> list[Exchange]:
    """Return a row for each class of sizes. Where only some sizes are known, these stand for all."""
    columns = group.operation == operation
    known = columns & (group.size_bytes > 0)
    sample = known if known.any() else columns
    factor = group.called / len(group.number) * float(columns.sum() / sample.sum())
    classes = np.ceil(np.log2(np.maximum(group.size_bytes, 1)))
    return [
        _exchange(group, operation, sample & (classes == each), factor)
        for each in np.unique(classes[sample])
    ]


def _exchange(
    group: Comparison, operation: str, columns: npt.NDArray[np.bool_], factor: float
) -> Exchange:
    duration, waiting = group.duration_ns[:, columns], group.waiting_ns[:, columns]
    last = np.bincount(duration.argmin(axis=0), minlength=len(group.group.members))
    transfer_s = float(duration.min(axis=0).sum()) / 1e9
    sent = int(group.size_bytes[columns].sum())
    rate = sent / transfer_s if transfer_s else 0.0
    return Exchange(
        operation=operation.strip("_"),
        group=group.group.name,
        is_function=group.group.is_function,
        members=group.group.members,
        calls=round(factor * int(columns.sum())),
        transfer_ns=round(factor * float(duration.min(axis=0).sum())),
        waiting_ns=round(factor * float(waiting.sum(axis=1).mean())),
        exposed_share=_exposed_share(duration, group.exposed_ns[:, columns]),
        last=group.group.members[int(last.argmax())],
        last_share=float(last.max() / columns.sum()),
        size_bytes=round(sent / int(columns.sum())),
        bytes_per_s=rate,
        bus_bytes_per_s=rate * bus_factor(operation, len(group.group.members)),
    )


def _exposed_share(duration: Ints, exposed: Ints) -> float:
    is_known = exposed >= 0
    total = float(duration[is_known].sum())
    return min(float(exposed[is_known].sum()) / total, 1.0) if total else UNKNOWN


def bus_factor(operation: str, members: int) -> float:
    """Return how much of the larger side each link of a ring carries, by the operation's name.

    Source: nccl-tests, doc/PERFORMANCE.md.
    """
    plain = operation.replace("-", "").replace("_", "").lower()
    if plain.startswith("allreduce"):
        return 2 * (members - 1) / members
    return (members - 1) / members if plain.startswith(_OF_PARTS) else 1.0
