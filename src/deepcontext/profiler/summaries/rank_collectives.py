"""The collectives of all ranks, compared: for each, who came late, and how long that made the others wait.

Compares durations, by the number of the collective in its group; no clocks are compared. No rank leaves
such a collective before the last has come: the shortest duration is the last rank's and is the
transfer; what the others have more is waiting. Who is late is charged only what it spent by itself more
than the others, and that only once: a rank that is late because it waited elsewhere has cost nobody
anything.
"""

from __future__ import annotations

import dataclasses
import json
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from deepcontext.errors import ProfileDataError
from deepcontext.profiler.format import rank_collectives
from deepcontext.profiler.model.windows import WindowTable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from deepcontext.profiler.model.profile_model import ProfileModel as Profile

    Ints = npt.NDArray[np.int64]
    Floats = npt.NDArray[np.float64]

FrameText = tuple[int, str, str, int]

_FEWEST: Final = 2
_UNKNOWN: Final = (0, 0, 0, 0, 0, 0, 0, -1)  # values of columns that a version has not
# Members that waited no longer than this share of what the others did came last together.
_TOGETHER: Final = 0.25
_SEVERAL_GROUPS: Final = (
    "not known: the program has several process groups, whose collectives could not be told apart"
)
_OTHER_NUMBERS: Final = (
    "not known: the ranks recorded different collectives; begin to record at the same place on all "
    "ranks, and let all ranks end"
)
_UNMATCHED: Final = (
    "not known: calls of collectives and their work could not be matched, for example because one "
    "call (reduce_scatter of a list) made several works"
)
_NO_GROUP: Final = "not known: the process groups of collectives could not be read"
_OLD: Final = (
    "not known: recorded by another version of deepcontext, whose collectives have no groups"
)


@dataclass(frozen=True, slots=True)
class GroupKey:
    """What a process group is known by on all ranks.

    Attributes:
        name: torch's, or that of a jitted function.
        members: ranks, ascending.
        is_function: whether the collectives are those of a jitted function.
    """

    name: str
    members: tuple[int, ...]
    is_function: bool = False


@dataclass(frozen=True, slots=True)
class StretchSample:
    """A place where a rank was in the stretch before a collective.

    Attributes:
        path: frames (kind, name, file, line), outermost first, without root and thread.
        doing: an element of `rank_collectives.DOING`.
        ns: elapsed time.
    """

    path: tuple[FrameText, ...]
    doing: str
    ns: int


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """The collectives of one group, of which the durations are known of all members.

    Attributes:
        group: the group.
        called: number of its collectives, compared or not.
        number: which were compared, shape (collectives,), ascending.
        operation: their operators, such as "allreduce_", or opcodes, shape (collectives,).
        size_bytes: what a member, or device, has of the larger side; 0 where unknown, same shape.
        order: their places among all collectives of a member, shape (members, collectives).
        duration_ns: same shape.
        exposed_ns: the part in which nothing else went on, -1 where unknown, same shape.
        waiting_ns: the part of the durations in which a member waited for the last, same shape.
        caused_ns: time that a member, by itself, made the others wait, same shape: the median over
            those that waited, shared by the members that came last within a quarter of it.
        samples: of each member, by order.
    """

    group: GroupKey
    called: int
    number: Ints
    operation: npt.NDArray[np.str_]
    size_bytes: Ints
    order: Ints
    duration_ns: Ints
    exposed_ns: Ints
    waiting_ns: Ints
    caused_ns: Floats
    samples: tuple[Mapping[int, Sequence[StretchSample]], ...]


@dataclass(frozen=True, slots=True)
class Comparisons:
    """All groups.

    Attributes:
        groups: those of several ranks that can be compared.
        left_out: number of the others of several ranks.
        reason: why there is none that can be compared, or "".
    """

    groups: tuple[Comparison, ...]
    left_out: int
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class _OfRank:
    """One group as one rank saw it.

    Attributes:
        called: number of its collectives.
        rows: number, order, operation, duration, own time, bytes, exposed time, shape (collectives, 7).
        operations: names, by index.
        samples: by order.
    """

    called: int
    rows: Ints
    operations: Sequence[str]
    samples: Mapping[int, Sequence[StretchSample]]


@dataclass(frozen=True, slots=True, eq=False)
class _Rank:
    rank: int
    reason: str
    groups: Mapping[GroupKey, _OfRank]
    left_out: int = 0


def ranks_of(profile: Profile) -> tuple[int, ...]:
    """Return the ranks of a merged profile that had collectives; empty for fewer than two.

    Raises:
        ProfileDataError: the section cannot be read.
    """
    ranks = tuple(rank.rank for rank in _read(profile))
    return ranks if len(ranks) >= _FEWEST else ()


def compare(profile: Profile) -> Comparisons:
    """Return the collectives of a merged profile, compared over its ranks; computed once.

    Raises:
        ProfileDataError: the section cannot be read.
    """
    return profile.once("compared collectives", lambda: _compared(profile))


def _compared(profile: Profile) -> Comparisons:
    ranks = _read(profile)
    reasons = [rank.reason for rank in ranks if rank.reason]
    if reasons:
        return Comparisons((), 0, reasons[0])
    if len(ranks) < _FEWEST or len(ranks) != profile.run.ranks:
        return Comparisons((), 0, _OTHER_NUMBERS)
    by_rank = {rank.rank: rank.groups for rank in ranks}
    keys = dict.fromkeys(key for rank in ranks for key in rank.groups)
    of_several = [key for key in keys if len(key.members) != 1]
    found = [_compare(key, by_rank) for key in of_several]
    groups = tuple(each for each in found if each is not None)
    for rank in by_rank:
        _charge(rank, groups)
    of_part = [_within(profile, each.comparison) for each in groups]
    compared = tuple(each for each in of_part if len(each.number))
    left_out = len(found) - len(groups) + max(rank.left_out for rank in ranks)
    return Comparisons(compared, left_out, "" if compared else _OTHER_NUMBERS)


def _within(profile: Profile, found: Comparison) -> Comparison:
    """Return the collectives of the steps in the profile's windows, if each step has as many as another."""
    table = WindowTable.of(profile.whole) if profile.whole else None
    if table is None:
        return found
    steps = table.windows()[-1].last_step
    low, high = (
        found.called * step / steps
        for step in (profile.of_windows[0].first_step - 1, profile.of_windows[-1].last_step)
    )
    kept = (found.number >= low) & (found.number < high)
    return dataclasses.replace(
        found,
        called=round(found.called * float(kept.mean())),
        number=found.number[kept],
        operation=found.operation[kept],
        size_bytes=found.size_bytes[kept],
        order=found.order[:, kept],
        duration_ns=found.duration_ns[:, kept],
        exposed_ns=found.exposed_ns[:, kept],
        waiting_ns=found.waiting_ns[:, kept],
        caused_ns=found.caused_ns[:, kept],
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Group:
    """A comparison whose `caused_ns` is filled in member by member.

    Attributes:
        comparison: the comparison.
        share_ns: what each member may have caused at most, shape (members, collectives); 0 where it was
            not late.
        excess_ns: own time less the median of the other members', same shape.
    """

    comparison: Comparison
    share_ns: Floats
    excess_ns: Floats


def _compare(key: GroupKey, by_rank: Mapping[int, Mapping[GroupKey, _OfRank]]) -> _Group | None:
    members = [by_rank.get(rank, {}).get(key) for rank in key.members]
    ranks = [member for member in members if member is not None]
    if not ranks or len(ranks) < len(members) or len({rank.called for rank in ranks}) > 1:
        return None
    numbers = ranks[0].rows[:, 0]
    for rank in ranks[1:]:
        numbers = np.intersect1d(numbers, rank.rows[:, 0])
    if not len(numbers):
        return None
    rows = np.stack([rank.rows[np.isin(rank.rows[:, 0], numbers)] for rank in ranks])
    order, duration, own = rows[:, :, 1], rows[:, :, 3], rows[:, :, 4]
    waiting = duration - duration.min(axis=0)
    comparison = Comparison(
        group=key,
        called=ranks[0].called,
        number=numbers,
        operation=np.array(ranks[0].operations)[rows[0, :, 2]],
        size_bytes=rows[:, :, 5].max(axis=0),
        exposed_ns=rows[:, :, 6],
        order=order,
        duration_ns=duration,
        waiting_ns=waiting,
        caused_ns=np.zeros(duration.shape),
        samples=tuple(rank.samples for rank in ranks),
    )
    excess = np.stack([own[m] - _median(np.delete(own, m, axis=0)) for m in range(len(ranks))])
    return _Group(comparison, _shares(waiting), excess)


def _shares(waiting: Ints) -> Floats:
    """Return what each member may have made the others wait, shape (members, collectives)."""
    others = np.sort(waiting, axis=0)[1:]
    is_late = waiting <= _TOGETHER * _median(others)
    waited = np.where(is_late, np.nan, waiting.astype(np.float64))
    waited[:, is_late.all(axis=0)] = 0
    return np.where(is_late, np.nanmedian(waited, axis=0) / is_late.sum(axis=0), 0.0)


def _median(table: Ints) -> Floats:
    return np.asarray(np.median(table, axis=0), np.float64)


def _charge(rank: int, groups: Sequence[_Group]) -> None:
    """Charge a rank for its excess of own time, as it comes to the collectives of all its groups.

    Own time since the last collective of a group may have made a rank of another group wait meanwhile.
    """
    calls = []
    for group in groups:
        members = group.comparison.group.members
        if rank in members:
            member = members.index(rank)
            calls += [
                (int(at), group, member, n) for n, at in enumerate(group.comparison.order[member])
            ]
    calls.sort(key=lambda call: call[0])
    charged = 0.0
    before: dict[GroupKey, tuple[int, float]] = {}
    for _, group, member, n in calls:
        key, number = group.comparison.group, int(group.comparison.number[n])
        last, charged_then = before.get(key, (-1, 0.0))
        meanwhile = charged - charged_then if last == number - 1 else 0.0
        own = max(0.0, float(group.excess_ns[member, n]) - meanwhile)
        caused = min(float(group.share_ns[member, n]), own)
        group.comparison.caused_ns[member, n] = caused
        charged += caused
        before[key] = number, charged


# -- the section


def _read(profile: Profile) -> list[_Rank]:
    """Return the content of the section, by rank; empty without the section."""
    return profile.once("collectives", lambda: _parsed(profile))


def _parsed(profile: Profile) -> list[_Rank]:
    name = next((name for name in rank_collectives.JOINED if name in profile.sections), None)
    if name is None:
        return []
    try:
        ranks: dict[str, Any] = json.loads(zlib.decompress(profile.sections[name]))["ranks"]
        of_functions = rank_collectives.JOINED[name] == rank_collectives.JAX_SECTION
        return [
            _rank(int(rank), ranks[rank], of_functions=of_functions)
            for rank in sorted(ranks, key=int)
        ]
    except (
        ValueError,
        TypeError,
        KeyError,
        AttributeError,
        IndexError,
        OverflowError,
        zlib.error,
    ) as error:
        raise ProfileDataError(
            f"section '{name}' is damaged: {error}; record the profile again"
        ) from error


def _rank(rank: int, content: dict[str, Any], *, of_functions: bool) -> _Rank:
    if content["version"] not in rank_collectives.COLUMNS:
        return _Rank(rank, _OLD, {})
    known = [
        GroupKey(str(name), tuple(map(int, members)), of_functions)
        for name, members, _ in content["groups"]
    ]
    reason = ""
    if not content["are_apart"]:
        reason = _SEVERAL_GROUPS
    elif content["unknown"] or not all(key.members for key in known):
        reason = _NO_GROUP
    elif content["unmatched"]:
        reason = _UNMATCHED
    rows = _rows_of(content)
    places = [tuple(_frame(*frame) for frame in path) for path in content["places"]]
    samples: dict[int, list[StretchSample]] = {}
    for order, place, doing, ns in content["samples"]:
        sample = StretchSample(places[place], rank_collectives.DOING[doing], int(ns))
        samples.setdefault(order, []).append(sample)
    operations = [str(name) for name in content["operations"]]
    groups = {}
    for index, (key, (_, _, called)) in enumerate(zip(known, content["groups"], strict=True)):
        of_group = _sorted(rows[rows[:, 0] == index][:, 1:])
        groups[key] = _OfRank(int(called), of_group, operations, samples)
    if len(groups) < len(known) and not reason:
        reason = _NO_GROUP  # a group was made again under its old name
    return _Rank(rank, reason, groups, int(content.get("left_out", 0)))


def _rows_of(content: dict[str, Any]) -> Ints:
    """Return the rows with all columns: bytes and exposed time are unknown to older versions."""
    columns = rank_collectives.COLUMNS[content["version"]]
    rows = np.array(content["rows"], np.int64).reshape(-1, columns)
    missing = np.array(_UNKNOWN[columns:], np.int64)
    return np.hstack([rows, np.tile(missing, (len(rows), 1))])


def _frame(kind: int, name: str, file: str, line: int) -> FrameText:
    return int(kind), str(name), str(file), int(line)


def _sorted(rows: Ints) -> Ints:
    rows = rows[np.argsort(rows[:, 0], kind="stable")]
    if len(np.unique(rows[:, 0])) < len(rows):
        raise ValueError("a collective occurs twice")
    return rows
