"""Which rank of a job came last to its collectives, and how long the others waited for it.

Sums what `rank_collectives.py` compares; `late_places.py` says where a late rank lost its time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.profiler.summaries import rank_collectives

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from deepcontext.profiler.model.profile_model import ProfileModel as Profile
    from deepcontext.profiler.summaries.rank_collectives import Comparison


PARTS: Final = 20


@dataclass(frozen=True, slots=True)
class RankDelays:
    """Collectives of one rank. Where only some were compared, sums are estimates for all.

    Attributes:
        rank: number of the rank.
        total_ns: durations of its collectives.
        waiting_ns: the part of the durations in which it waited for the last rank.
        caused_ns: time that it, as the last, made the others wait: the median over them, shared by
            ranks that came last together.
        error_ns: standard error of `caused_ns`; 0 where all collectives were compared.
        longest_ns: the largest part of `caused_ns` of one collective.
        over_time_ns: `caused_ns` by twentieths of the rank's collectives, in the order of its calls.
    """

    rank: int
    total_ns: int
    waiting_ns: int
    caused_ns: int
    error_ns: int
    longest_ns: int
    over_time_ns: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LateRanks:
    """Delays of all ranks.

    Attributes:
        rows: one for each rank, ascending; empty if `reason` says why nothing is known.
        groups: number of process groups that were compared.
        groups_left_out: number of process groups of several ranks that could not be.
        collectives: number of collectives of the groups that no rank leaves before the last has come.
        compared: number of these whose durations are known of all members.
        reason: why nothing is known, or "".
    """

    rows: tuple[RankDelays, ...]
    groups: int
    groups_left_out: int
    collectives: int
    compared: int
    reason: str


def by_lateness(profile: Profile) -> LateRanks | None:
    """Return who was late in a merged profile; None without collectives of several ranks.

    Raises:
        ProfileDataError: the section cannot be read.
    """
    ranks = rank_collectives.ranks_of(profile)
    if not ranks:
        return None
    found = rank_collectives.compare(profile)
    rows = tuple(_delays(rank, found.groups) for rank in ranks) if found.groups else ()
    return LateRanks(
        rows,
        groups=len(found.groups),
        groups_left_out=found.left_out,
        collectives=sum(group.called for group in found.groups),
        compared=sum(len(group.number) for group in found.groups),
        reason=found.reason,
    )


def _delays(rank: int, groups: Sequence[Comparison]) -> RankDelays:
    total = waiting = longest = variance = 0.0
    over_time = np.zeros(PARTS)
    calls = 1 + max(_last_order(rank, group) for group in groups)
    for group in groups:
        if rank not in group.group.members:
            continue
        member = group.group.members.index(rank)
        factor = group.called / len(group.number)
        of_rank = group.caused_ns[member]
        part = group.order[member] * PARTS // calls
        over_time += factor * np.bincount(part, weights=of_rank, minlength=PARTS)
        total += factor * float(group.duration_ns[member].sum())
        waiting += factor * float(group.waiting_ns[member].sum())
        longest = max(longest, float(of_rank.max(initial=0)))
        variance += _variance(of_rank, group.called)
    parts = tuple(round(value) for value in over_time.tolist())
    caused = round(float(over_time.sum()))
    error = math.sqrt(variance)
    return RankDelays(
        rank, round(total), round(waiting), caused, round(error), round(longest), parts
    )


def _variance(values: npt.NDArray[np.float64], of: int) -> float:
    """Return the variance of the sum of `of` values as estimated from some of them."""
    known = len(values)
    if known == of:
        return 0.0
    spread = float(values.var(ddof=1)) if known > 1 else float(values[0]) ** 2
    return of**2 * spread / known * (1 - known / of)


def _last_order(rank: int, group: Comparison) -> int:
    members = group.group.members
    return int(group.order[members.index(rank)].max()) if rank in members else 0
