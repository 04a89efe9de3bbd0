"""How evenly the ranks of a merged profile are loaded, in total and by line.

Reads the tree that `model/merging.py` makes: below the root, a frame of kind rank for each process. For
ranks joined into one tree, `joined_ranks.py` has the values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from deepcontext.profiler.format.frame import FrameKind, Phase
from deepcontext.profiler.format.metric import (
    HOST_TIME_NS,
    SAMPLED_CPU_TIME_NS,
    SAMPLED_WAIT_TIME_NS,
)
from deepcontext.profiler.model.elapsed import ELAPSED_TIME_NS, is_sampled
from deepcontext.profiler.model.job import sections
from deepcontext.profiler.model.metric_values import exclusive_or_zeros
from deepcontext.profiler.model.tree import NO_NODE
from deepcontext.profiler.summaries import joined_ranks
from deepcontext.profiler.summaries.lines import UserLines
from deepcontext.profiler.summaries.time_between_operators import on_main_threads

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from deepcontext.profiler.model.profile_model import ProfileModel as Profile

    Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RankTime:
    """Time of one rank.

    Attributes:
        rank: number of the rank.
        operator_ns: host time in operators.
        running_ns: processor time between operators, on any thread, sampled.
        waiting_ns: elapsed time between operators in which the main thread waited, sampled.
    """

    rank: int
    operator_ns: int
    running_ns: int
    waiting_ns: int


@dataclass(frozen=True, slots=True)
class UnevenLine:
    """A line of the user's code that takes some ranks longer than others.

    Attributes:
        function: name of the function the line is in.
        file: source file.
        line: 1-based.
        by_rank: value of the line on each compared rank, without deeper lines of the user's code; by
            default the ns of `line_time`.
    """

    function: str
    file: str
    line: int
    by_rank: tuple[int, ...]

    @property
    def excess(self) -> float:
        """Difference between the largest value of a rank and the mean."""
        return max(self.by_rank) - sum(self.by_rank) / len(self.by_rank)


def rank_nodes(profile: Profile) -> tuple[tuple[int, int], ...]:
    """Return the number and node of each rank, ascending; empty for a profile of one process."""
    found = []
    for node in profile.tree.children(0):
        frame = profile.frame(node)
        if frame.kind is FrameKind.RANK:
            found.append((frame.line, node))
    return tuple(sorted(found))


def rank_count(profile: Profile) -> int:
    """Return the number of ranks of a merged profile, 0 for a profile of one process."""
    return profile.run.ranks if sections.is_job(profile) else len(rank_nodes(profile))


def by_rank(profile: Profile) -> tuple[RankTime, ...]:
    """Return one row per rank."""
    joined = joined_ranks.rows(profile)
    if joined:
        return tuple(
            RankTime(row.rank, row.operator_ns, row.running_ns, row.waiting_ns) for row in joined
        )
    return _times(profile, np.ones(len(profile.tree), np.bool_))


def loading_by_rank(profile: Profile) -> tuple[RankTime, ...]:
    """Return the part of `by_rank` in which data was loaded; empty for joined ranks, which lack it."""
    if joined_ranks.rows(profile):
        return ()
    return _times(profile, profile.tree.phase == Phase.DATA_LOADING)


def _times(profile: Profile, counted: npt.NDArray[np.bool_]) -> tuple[RankTime, ...]:
    """Return the time of each rank at the nodes that count, shape (nodes,)."""
    tree = profile.tree
    is_operator = profile.is_kind(FrameKind.OPERATOR)
    host = np.where(
        tree.nearest(is_operator) == NO_NODE, 0, exclusive_or_zeros(profile, HOST_TIME_NS.name)
    )
    running = exclusive_or_zeros(profile, SAMPLED_CPU_TIME_NS.name)
    waited = exclusive_or_zeros(profile, SAMPLED_WAIT_TIME_NS.name)
    waiting = np.where(on_main_threads(profile), waited, 0)
    rows = []
    for rank, node in rank_nodes(profile):
        end = int(tree.subtree_end[node])
        rows.append(
            RankTime(
                rank=rank,
                operator_ns=int(host[node:end][counted[node:end]].sum()),
                running_ns=int(running[node:end][counted[node:end]].sum()),
                waiting_ns=int(waiting[node:end][counted[node:end]].sum()),
            )
        )
    return tuple(rows)


def line_time(profile: Profile) -> Ints:
    """Return elapsed ns of each node; ns in operators if nothing was sampled; shape (nodes,)."""
    is_known = is_sampled(profile.metrics)
    return exclusive_or_zeros(profile, ELAPSED_TIME_NS.name if is_known else HOST_TIME_NS.name)


def uneven_lines(
    profile: Profile,
    limit: int,
    values: Ints | None = None,
    ranks: Sequence[tuple[int, int]] | None = None,
) -> tuple[UnevenLine, ...]:
    """Return the lines whose times differ most between ranks, by the excess of the slowest rank.

    Args:
        profile: the merged profile.
        limit: largest number of lines.
        values: exclusive value of each node, shape (nodes,); `line_time` if None.
        ranks: elements of `rank_nodes` to compare; all if None.
    """
    if joined_ranks.rows(profile):
        joined = joined_ranks.line_table(profile)
        return _uneven(profile, joined.frame, joined.values.T, limit)
    ranks = rank_nodes(profile) if ranks is None else ranks
    if not ranks:
        return ()
    values = line_time(profile) if values is None else values
    lines, tree = UserLines.of(profile), profile.tree
    nodes = np.arange(len(tree))
    table = np.stack([
        lines.sums(values, (nodes >= node) & (nodes < tree.subtree_end[node])) for _, node in ranks
    ])
    return _uneven(profile, lines.frame, table, limit)


def _uneven(profile: Profile, frames: Ints, table: Ints, limit: int) -> tuple[UnevenLine, ...]:
    """Return the first lines by excess; `table` has the shape (ranks, lines)."""
    excess = table.max(axis=0) - table.mean(axis=0)
    order = np.lexsort((frames, -excess))
    rows = []
    for index in order[excess[order] > 0][:limit].tolist():
        frame = profile.frames[int(frames[index])]
        of_ranks = tuple(table[:, index].tolist())
        rows.append(UnevenLine(frame.name, frame.file, frame.line, of_ranks))
    return tuple(rows)
