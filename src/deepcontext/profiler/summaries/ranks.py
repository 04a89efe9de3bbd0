"""The ranks of a merged profile: what each did, and what each spent at the largest call paths.

Reads the sections of a job's profile (`model/job/`). Values by rank are known at the largest paths only, so
a path includes the cost of smaller paths below it. Each inclusive value is accurate to 0.04 %.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.profiler.format.frame import FrameKind, Phase
from deepcontext.profiler.format.metric import (
    HOST_TIME_NS,
    SAMPLED_CPU_TIME_NS,
    SAMPLED_WAIT_TIME_NS,
)
from deepcontext.profiler.model.elapsed import ELAPSED_TIME_NS
from deepcontext.profiler.model.grouping import NO_GROUP
from deepcontext.profiler.model.job import sections
from deepcontext.profiler.model.job.columns import UNKNOWN, decode
from deepcontext.profiler.model.job.packing import damage
from deepcontext.profiler.model.job.steady import STEADY, is_of_part, of_steady
from deepcontext.profiler.model.place import Place
from deepcontext.profiler.model.tree import NO_NODE
from deepcontext.profiler.model.windows import WindowKind
from deepcontext.profiler.summaries.lines import UserLines
from deepcontext.profiler.summaries.time_between_operators import on_main_threads

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from deepcontext.profiler.model.job.rank_row import RankRow
    from deepcontext.profiler.model.job.sections import NodeColumns
    from deepcontext.profiler.model.profile_model import ProfileModel as Profile

    Mask = npt.NDArray[np.bool_]
    Table = npt.NDArray[np.float64]

# What is shown of a value over all ranks.
SUMMARY: Final[dict[str, Callable[[Sequence[int]], float]]] = {
    "least": min,
    "median": statistics.median,
    "most": max,
}
# Up to this number, ranks can be read one by one.
_FEWEST_BINNED: Final = 65
_BINS: Final = 24


@dataclass(frozen=True, slots=True)
class UnevenLine(Place):
    """A line of the user's code that takes some ranks longer than others.

    Attributes:
        by_rank: elapsed ns (ns in operators if nothing was sampled) of the line on each compared rank,
            without deeper lines of the user's code.
        index: index of the line in `UserLines`.
    """

    by_rank: tuple[int, ...]
    index: int

    @property
    def excess(self) -> float:
        """Difference between the largest value of a rank and the mean."""
        return max(self.by_rank) - sum(self.by_rank) / len(self.by_rank)


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


@dataclass(frozen=True, slots=True)
class LoadingTime:
    """The part of a rank's times in which data was loaded; the names are those of `RankRow`."""

    operator_ns: int
    running_ns: int
    waiting_ns: int


def rank_count(profile: Profile) -> int:
    """Return the number of ranks of a merged profile, 0 for a profile of one process."""
    return profile.run.ranks if sections.is_job(profile) else 0


def by_rank(profile: Profile) -> tuple[RankRow, ...]:
    """Return what is known about each rank, ascending.

    Empty for a profile of one process, and for windows of a job other than its steady state.
    """
    if not sections.is_job(profile) or _prefix(profile) is None:
        return ()
    # A report asks several times; a section of thousands of ranks takes 0.1 s to unpack.
    return profile.once(by_rank, lambda: _rows(profile))


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


def loading_by_rank(profile: Profile) -> tuple[LoadingTime, ...]:
    """Return the part of each rank's times in which data was loaded, at the largest paths."""
    tree, node = profile.tree, largest_nodes(profile)
    is_operator = tree.nearest(profile.is_kind(FrameKind.OPERATOR)) != NO_NODE
    loading = tree.phase[node] == Phase.DATA_LOADING
    parts = (
        (HOST_TIME_NS.name, loading & is_operator[node]),
        (SAMPLED_CPU_TIME_NS.name, loading),
        (SAMPLED_WAIT_TIME_NS.name, loading & on_main_threads(profile)[node]),
    )
    sums = [own_values(profile, metric)[mask].sum(axis=0) for metric, mask in parts]
    return tuple(LoadingTime(*map(round, times)) for times in np.stack(sums).T.tolist())


def largest_nodes(profile: Profile) -> npt.NDArray[np.intp]:
    """Return the nodes of the largest paths of a merged profile, ascending, shape (rows,)."""
    return _held(profile).node.astype(np.intp)


def metrics_by_rank(profile: Profile) -> tuple[str, ...]:
    """Return the metrics that `own_values` knows."""
    prefix = _prefix(profile)
    codes = _held(profile).columns.codes
    if not prefix:
        return tuple(name for name in codes if not is_of_part(name))
    return tuple(name.removeprefix(prefix) for name in codes if name.startswith(prefix))


def is_on_rank(profile: Profile) -> Mask:
    """Return which ranks are known to have which of the largest paths, shape (rows, ranks)."""
    held = _held(profile).columns
    known = np.zeros((len(held.key), len(held.rank)), np.bool_)
    for metric in metrics_by_rank(profile):
        codes = held.codes[f"{_prefix(profile)}{metric}"]
        known |= (codes != 0) & (codes != UNKNOWN)
    return known


def own_values(profile: Profile, metric: str) -> Table:
    """Return what each rank spent at each of the largest paths, without those of them that lie below.

    Returns:
        shape (rows, ranks), float64, 0 for a metric without values by rank. A value that should be 0 may
        be a little less or more, because it is a difference of values that are not exact.
    """
    return profile.once((own_values, metric), lambda: _own(profile, metric))


def line_metric(profile: Profile) -> str:
    """Return the metric that lines of ranks are compared by: elapsed time, else host time."""
    known = metrics_by_rank(profile)
    return ELAPSED_TIME_NS.name if ELAPSED_TIME_NS.name in known else HOST_TIME_NS.name


def uneven_lines(
    profile: Profile,
    limit: int,
    values: Table | None = None,
    ranks: Sequence[int] | None = None,
) -> tuple[UnevenLine, ...]:
    """Return the lines whose times differ most between ranks, by the excess of the slowest rank.

    Args:
        profile: the merged profile; of a profile of one process nothing is returned.
        limit: largest number of lines.
        values: what each rank spent at each of the largest paths, shape (rows, ranks); those of
            `line_metric` if None.
        ranks: indices of the ranks to compare; all if None.
    """
    if not by_rank(profile):
        return ()
    values = own_values(profile, line_metric(profile)) if values is None else values
    table = by_line(profile, values if ranks is None else values[:, list(ranks)])
    excess = table.max(axis=1) - table.mean(axis=1)
    lines = UserLines.of(profile)
    return tuple(
        UnevenLine.at(lines.frame_of(profile, index), tuple(table[index].tolist()), index)
        for index in lines.largest(excess)[:limit].tolist()
    )


def by_line(profile: Profile, values: Table) -> npt.NDArray[np.int64]:
    """Return the sums over the paths of each line of `UserLines`.

    Args:
        profile: the merged profile.
        values: values at the largest paths, shape (rows, ranks).

    Returns:
        shape (lines, ranks), int64, at least 0.
    """
    lines = UserLines.of(profile)
    line = lines.of_node[largest_nodes(profile)]
    table = np.zeros((len(lines.frame), values.shape[1]))
    np.add.at(table, line[line != NO_GROUP], values[line != NO_GROUP])
    return np.maximum(np.rint(table), 0).astype(np.int64)


def _prefix(profile: Profile) -> str | None:
    """Return what begins the names of the metrics of a profile's windows; None for windows without any."""
    if not profile.of_windows:
        return ""
    return STEADY if all(each.kind is WindowKind.STEADY for each in profile.of_windows) else None


def _rows(profile: Profile) -> tuple[RankRow, ...]:
    rows = sections.rows_of(profile)
    return tuple(map(of_steady, rows)) if profile.of_windows else rows


def _held(profile: Profile) -> NodeColumns:
    return profile.once(sections.COLUMNS, lambda: _checked(profile))


def _checked(profile: Profile) -> NodeColumns:
    held = sections.columns_of(profile)
    if len(held.columns.rank) != len(by_rank(profile)):
        count = (
            f"{len(held.columns.rank)} ranks, section '{sections.RANKS}' has "
            f"{len(by_rank(profile))}"
        )
        raise damage(sections.COLUMNS, count)
    return held


def _own(profile: Profile, metric: str) -> Table:
    held, node = _held(profile), largest_nodes(profile)
    if metric not in metrics_by_rank(profile):
        return np.zeros((len(node), len(held.columns.rank)))
    codes = held.columns.codes[f"{_prefix(profile)}{metric}"]
    inclusive = _known(profile, metric, node, decode(codes))
    own = inclusive.copy()
    above = _nearest_above(profile, node)
    inner = np.flatnonzero(above >= 0)
    np.subtract.at(own, above[inner], inclusive[inner])
    return own


def _known(profile: Profile, metric: str, node: npt.NDArray[np.intp], values: Table) -> Table:
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
