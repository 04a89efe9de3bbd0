"""Which rank of a job came last to its collectives, and how long the others waited for it.

Compares the durations of each collective over the ranks, by its number; no clocks are compared. No rank
leaves such a collective before the last has come: the shortest duration is the last rank's and is the
transfer; what the others have more is waiting. Does not know in which line a rank lost its time.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from deepcontext.errors import ProfileDataError
from deepcontext.profiler.format import rank_collectives

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from deepcontext.profiler.model.profile_model import ProfileModel as Profile

    Ints = npt.NDArray[np.int64]

_FEWEST: Final = 2
_SEVERAL_GROUPS: Final = (
    "not known: the program has several process groups, whose collectives are not told apart"
)
_OTHER_NUMBERS: Final = (
    "not known: the ranks recorded different collectives; begin to record at the same place on all "
    "ranks, and let all ranks end"
)
_UNMATCHED: Final = (
    "not known: calls of collectives and their work could not be matched, for example because one "
    "call (reduce_scatter of a list) made several works"
)


@dataclass(frozen=True, slots=True)
class RankDelays:
    """Collectives of one rank. Where only some were compared, sums are estimates for all.

    Attributes:
        rank: number of the rank.
        total_ns: durations of its collectives.
        waiting_ns: the part of the durations in which it waited for the last rank.
        caused_ns: time that it, as the last, made the others wait: the median over the others.
        longest_ns: the largest part of `caused_ns` of one collective.
    """

    rank: int
    total_ns: int
    waiting_ns: int
    caused_ns: int
    longest_ns: int


@dataclass(frozen=True, slots=True)
class LateRanks:
    """Delays of all ranks.

    Attributes:
        rows: one for each rank, ascending; empty if `reason` says why nothing is known.
        collectives: number of collectives of each rank that no rank leaves before the last has come.
        compared: number of these whose durations are known of all ranks.
        reason: why nothing is known, or "".
    """

    rows: tuple[RankDelays, ...]
    collectives: int
    compared: int
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class _Rank:
    """The content of one rank's section; `rows` has shape (collectives, 3), int64, by number."""

    rank: int
    groups: int
    called: int
    unmatched: int
    rows: Ints


def by_lateness(profile: Profile) -> LateRanks | None:
    """Return who was late in a merged profile; None without collectives of several ranks.

    Raises:
        ProfileDataError: the section cannot be read.
    """
    payload = profile.sections.get(rank_collectives.SECTION)
    ranks = [] if payload is None else _read(payload)
    if len(ranks) < _FEWEST:
        return None
    if any(rank.groups > 1 for rank in ranks):
        return LateRanks((), 0, 0, _SEVERAL_GROUPS)
    if any(rank.unmatched for rank in ranks):
        return LateRanks((), 0, 0, _UNMATCHED)
    called = ranks[0].called
    numbers = ranks[0].rows[:, 0]
    for rank in ranks[1:]:
        numbers = np.intersect1d(numbers, rank.rows[:, 0])
    alike = len(ranks) == profile.run.ranks and all(rank.called == called for rank in ranks)
    if not alike or not len(numbers):
        return LateRanks((), 0, 0, _OTHER_NUMBERS)
    return LateRanks(_delays(ranks, numbers, called), called, len(numbers), "")


def _delays(ranks: Sequence[_Rank], numbers: Ints, called: int) -> tuple[RankDelays, ...]:
    rows = np.stack([rank.rows[np.isin(rank.rows[:, 0], numbers)] for rank in ranks])
    duration, overlaps = rows[:, :, 1], rows[:, :, 2]
    waiting = duration - duration.min(axis=0)
    last = duration.argmin(axis=0)
    caused = _increase(_median_of_others(waiting), numbers, overlaps.mean(axis=0) >= 1 / 2)
    factor = called / len(numbers)
    return tuple(
        RankDelays(
            rank.rank,
            total_ns=round(factor * float(duration[place].sum())),
            waiting_ns=round(factor * float(waiting[place].sum())),
            caused_ns=round(factor * float(caused[last == place].sum())),
            longest_ns=round(float(caused[last == place].max(initial=0))),
        )
        for place, rank in enumerate(ranks)
    )


def _median_of_others(waiting: Ints) -> npt.NDArray[np.float64]:
    """Return how long the ranks but the last waited, shape (collectives,); the last waited least."""
    return np.asarray(np.median(np.sort(waiting, axis=0)[1:], axis=0), np.float64)


def _increase(
    delay: npt.NDArray[np.float64], numbers: Ints, overlaps: npt.NDArray[np.bool_]
) -> npt.NDArray[np.float64]:
    """Return the delay that is new: collectives in flight together share one delay."""
    follows = np.zeros(len(delay), np.bool_)
    follows[1:] = overlaps[1:] & (np.diff(numbers) == 1)
    before = np.where(follows, np.concatenate(([0.0], delay[:-1])), 0.0)
    return np.maximum(delay - before, 0.0)


def _read(payload: bytes) -> list[_Rank]:
    try:
        content: dict[str, Any] = json.loads(payload)
        ranks = content.get("ranks", {})
        return [_rank(int(rank), ranks[rank]) for rank in sorted(ranks, key=int)]
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
        raise ProfileDataError(
            f"section '{rank_collectives.SECTION}' is damaged: {error}; record the profile again"
        ) from error


def _rank(rank: int, content: dict[str, Any]) -> _Rank:
    rows = np.array(content["rows"], np.int64).reshape(-1, 3)
    rows = rows[np.argsort(rows[:, 0], kind="stable")]
    if len(np.unique(rows[:, 0])) < len(rows):
        raise ValueError("a collective occurs twice")
    groups, called, unmatched = (int(content[name]) for name in ("groups", "called", "unmatched"))
    return _Rank(rank, groups, called, unmatched, rows)
