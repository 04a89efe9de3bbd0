"""Ranks of a joined job: what each did, and lines by rank, from the sections of the job's profile.

Does not need the trees of the ranks; `ranks.py` has the same answers for ranks side by side. Values
by rank are known at the largest paths only, so a line includes the cost of smaller paths below it.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.profiler.format.metric import HOST_TIME_NS
from deepcontext.profiler.model.elapsed import ELAPSED_TIME_NS
from deepcontext.profiler.model.job import sections
from deepcontext.profiler.model.job.columns import decode, encode
from deepcontext.profiler.model.job.packing import damage
from deepcontext.profiler.summaries.lines import UserLines

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from deepcontext.profiler.model.job.columns import Codes
    from deepcontext.profiler.model.job.rank_row import RankRow
    from deepcontext.profiler.model.job.sections import NodeColumns
    from deepcontext.profiler.model.profile_model import ProfileModel as Profile

    Table = npt.NDArray[np.int64]

# What is said of a value over all ranks.
SUMMARY: Final[dict[str, Callable[[Sequence[int]], float]]] = {
    "least": min,
    "median": statistics.median,
    "most": max,
}
# Up to this number, ranks can be read one by one.
_FEWEST_BINNED: Final = 65
_BINS: Final = 24


@dataclass(frozen=True, slots=True, eq=False)
class LineTable:
    """Elapsed time of each line of the user's code on each rank, without deeper lines.

    Attributes:
        frame: a frame of each line, shape (lines,).
        values: ns, shape (lines, ranks), int64.
    """

    frame: npt.NDArray[np.int64]
    values: Table


@dataclass(frozen=True, slots=True)
class Histogram:
    """How many ranks worked how long.

    Attributes:
        least_ns: shortest working time.
        most_ns: longest working time.
        bins: number of ranks in each of equal parts of the range between them, the shortest first.
    """

    least_ns: int
    most_ns: int
    bins: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class KeptValues:
    """What each rank spent at the largest paths, without those of these paths that lie below.

    Attributes:
        node: the nodes, ascending, shape (rows,).
        codes: by metric the values, as `columns.encode` codes them, shape (rows, ranks).
    """

    node: npt.NDArray[np.intp]
    codes: dict[str, Codes]


def rows(profile: Profile) -> tuple[RankRow, ...]:
    """Return what is known about each rank, ascending; empty for a profile without joined ranks."""
    if not sections.is_job(profile):
        return ()
    # A report asks several times; a section of thousands of ranks takes 0.1 s to unpack.
    return profile.once(rows, lambda: sections.rows_of(profile))


def working_ns(row: RankRow) -> int:
    """Return the time in which a rank worked: in operators, and running between them."""
    return row.operator_ns + row.running_ns


def slowest(found: Sequence[RankRow]) -> list[RankRow]:
    """Return the ranks by working time, the longest first."""
    return sorted(found, key=lambda row: (-working_ns(row), row.rank))


def typical(ordered: Sequence[RankRow], slow: int, count: int) -> list[RankRow]:
    """Return ranks around the median of those that `slowest` ordered, none of the first `slow`."""
    start = slow + max(0, len(ordered) // 2 - slow - count // 2)
    return list(ordered[start : start + count])


def histogram(found: Sequence[RankRow]) -> Histogram | None:
    """Return how the working times are distributed; None for few ranks."""
    if len(found) < _FEWEST_BINNED:
        return None
    times = [working_ns(row) for row in found]
    bins = np.histogram(times, _BINS)[0].tolist()
    return Histogram(min(times), max(times), tuple(bins))


def kept_values(profile: Profile) -> KeptValues:
    """Return what is known of each rank at each of the largest paths."""
    held = _held(profile)
    node = held.node.astype(np.intp)
    everything = np.arange(len(node))
    return KeptValues(
        node,
        {
            metric: encode(np.rint(_own(profile, held, metric, everything)).astype(np.int64))
            for metric in held.columns.codes
        },
    )


def line_table(profile: Profile) -> LineTable:
    """Return the lines of the user's code among the largest paths, by rank."""
    return profile.once(line_table, lambda: _line_table(profile))


def _held(profile: Profile) -> NodeColumns:
    held = sections.columns_of(profile)
    if len(held.columns.rank) != len(rows(profile)):
        count = (
            f"{len(held.columns.rank)} ranks, section '{sections.RANKS}' has {len(rows(profile))}"
        )
        raise damage(sections.COLUMNS, count)
    return held


def _line_table(profile: Profile) -> LineTable:
    held = _held(profile)
    metric = ELAPSED_TIME_NS.name
    if metric not in held.columns.codes:
        metric = HOST_TIME_NS.name
    lines = UserLines.of(profile)
    values = np.zeros((len(lines.frame), len(held.columns.rank)), np.int64)
    if metric not in held.columns.codes:
        return LineTable(lines.frame, values)
    is_user = profile.is_user_code()[profile.tree.frame]
    chosen = np.flatnonzero(is_user[held.node])
    own = _own(profile, held, metric, chosen)
    np.add.at(values, lines.of_node[held.node[chosen]], own.astype(np.int64))
    return LineTable(lines.frame, values)


def _own(
    profile: Profile, held: NodeColumns, metric: str, chosen: npt.NDArray[np.intp]
) -> npt.NDArray[np.float64]:
    """Return the value of each rank at chosen rows, without the chosen rows below each."""
    node = held.node[chosen].astype(np.intp)
    inclusive = _known(profile, metric, node, decode(held.columns.codes[metric][chosen]))
    own = inclusive.copy()
    above = _nearest_above(profile, node)
    inner = np.flatnonzero(above >= 0)
    np.subtract.at(own, above[inner], inclusive[inner])
    # Logarithms are inexact, so a difference of two equal values may be below 0.
    return np.maximum(own, 0)


def _known(
    profile: Profile, metric: str, node: npt.NDArray[np.intp], values: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return values without gaps.

    Where all ranks with a value are known, the others have 0. Elsewhere an unknown value is taken to be
    the mean of the known values.
    """
    spread = sections.spreads_of(profile)[metric]
    ranks = np.zeros(len(profile.tree), np.int64)
    ranks[spread.node] = spread.ranks
    unknown = np.isnan(values)
    filled = np.where(unknown, 0, values)
    is_complete = np.count_nonzero(filled, axis=1) >= ranks[node]
    mean = filled.sum(axis=1) / np.maximum(np.count_nonzero(~unknown, axis=1), 1)
    return np.where(unknown & ~is_complete[:, np.newaxis], mean[:, np.newaxis], filled)


def _nearest_above(profile: Profile, node: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Return for each of some nodes the index of the nearest of them above it, -1 for none."""
    index = np.full(len(profile.tree) + 1, -1)
    index[node] = np.arange(len(node))
    is_one = index[:-1] >= 0
    above = profile.tree.nearest(is_one)[profile.tree.parent[node]]
    above[profile.tree.parent[node] < 0] = -1
    return index[above]
