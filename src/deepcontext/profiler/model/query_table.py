"""Tables of a query: its nodes grouped by name, source line, module or call path.

Invariants: every selected node is in exactly one row, so the exclusive values of the rows add up to
the query's total; the inclusive value of a row counts a node once, even if the group is nested in
itself (a recursive function, an operator that calls itself).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, assert_never, get_args

import numpy as np

from deepcontext.errors import QueryError
from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.format.metric import Aggregation
from deepcontext.profiler.model.grouping import NO_GROUP, Groups, Spread, Spreads, sums, topmost
from deepcontext.profiler.model.tree import NO_NODE

if TYPE_CHECKING:
    import numpy.typing as npt

    from deepcontext.profiler.format.frame import Frame
    from deepcontext.profiler.model.profile_model import ProfileModel

    Ints = npt.NDArray[np.int64]
    Mask = npt.NDArray[np.bool_]

Grouping: TypeAlias = Literal["name", "line", "module", "path"]
GROUPINGS: tuple[str, ...] = get_args(Grouping)


@dataclass(frozen=True, slots=True)
class TableRow:
    """Selected nodes with one key.

    Attributes:
        key: what the nodes share: a name, ``file:line``, a module, or a path with " > " between
            its frames; "" for nodes outside any module, or below no source line.
        frame: the frame that stands for the group, or None where the key is "".
        node: the node of the group with the largest exclusive value.
        nodes: number of nodes.
        exclusive: sum over the nodes, or maximum of a `MAX` metric, in the metric's unit.
        inclusive: the same with descendants, each counted once.
        count: number of events.
        spread: how the single events are distributed, None where the group has no events.
    """

    key: str
    frame: Frame | None
    node: int
    nodes: int
    exclusive: int
    inclusive: int
    count: int
    spread: Spread | None


def table_of(
    profile: ProfileModel, mask: Mask, metric: str, by: Grouping, limit: int | None
) -> list[TableRow]:
    """Return the groups of the nodes in `mask`; see `Query.table`."""
    if by not in GROUPINGS:
        raise QueryError(f"cannot group by '{by}'; known: {', '.join(GROUPINGS)}")
    exclusive = profile.exclusive(metric)
    nodes = np.flatnonzero(mask)
    if not len(nodes):
        return []
    holder = _holders(profile, by)[nodes]
    group_of_node = np.full(len(mask), NO_GROUP, np.int64)
    groups = Groups.of(_key_numbers(profile, by, holder), largest=exclusive[nodes])
    group_of_node[nodes] = groups.of_row()
    columns = _Columns.of_groups(profile, metric, group_of_node, len(groups))
    best = groups.order[groups.start]
    order = np.lexsort((nodes[best], -columns.exclusive))[:limit]
    return [
        columns.row(profile, by, index, (int(nodes[best[index]]), int(holder[best[index]])))
        for index in order.tolist()
    ]


def _holders(profile: ProfileModel, by: Grouping) -> Ints:
    """Return for each node the node whose frame names its group, or `NO_NODE`."""
    tree, frames = profile.tree, profile.frames
    match by:
        case "line":
            has_line = (frames.kind == FrameKind.PYTHON) & (frames.line > 0)
            return tree.nearest(has_line[tree.frame])
        case "module":
            return tree.nearest(profile.is_kind(FrameKind.MODULE))
        case "name" | "path":
            return np.arange(len(tree))


def _key_numbers(profile: ProfileModel, by: Grouping, holder: Ints) -> Ints:
    """Return a number for each holder; holders of one group have equal numbers."""
    frames = profile.frames
    match by:
        case "path":
            return holder
        case "line":
            key = frames.source_line()
        case "name" | "module":
            key = (frames.name.astype(np.int64) << 8) | frames.kind
        case unknown:
            assert_never(unknown)
    return np.where(holder == NO_NODE, -1, key[profile.tree.frame[holder]])


@dataclass(frozen=True, slots=True)
class _Columns:
    """The numbers of all rows, shape (groups,) each."""

    nodes: Ints
    exclusive: Ints
    inclusive: Ints
    spreads: Spreads

    @classmethod
    def of_groups(cls, profile: ProfileModel, metric: str, group: Ints, count: int) -> _Columns:
        """Combine by `group`, the group of each node or `NO_GROUP`, shape (nodes,)."""
        rows = profile.metrics[metric]
        is_maximum = rows.descriptor.aggregation is Aggregation.MAX
        members = np.flatnonzero(group != NO_GROUP)
        top = topmost(profile.tree, group)
        combine = _maxima if is_maximum else sums
        return cls(
            nodes=np.bincount(group[members], minlength=count),
            exclusive=combine(group[members], profile.exclusive(metric)[members], count),
            inclusive=combine(group[top], profile.inclusive(metric)[top], count),
            spreads=Spreads.of_rows(rows, group[rows.node], count),
        )

    def row(
        self, profile: ProfileModel, by: Grouping, index: int, best: tuple[int, int]
    ) -> TableRow:
        """Return one row; `best` is its costliest node and the node whose frame names it."""
        node, holder = best
        frame = None if holder == NO_NODE else profile.frame(holder)
        return TableRow(
            key=_key_text(profile, by, node, frame),
            frame=frame,
            node=node,
            nodes=int(self.nodes[index]),
            exclusive=int(self.exclusive[index]),
            inclusive=int(self.inclusive[index]),
            count=int(self.spreads.count[index]),
            spread=self.spreads.spread(index),
        )


def _key_text(profile: ProfileModel, by: Grouping, node: int, frame: Frame | None) -> str:
    if frame is None:
        return ""
    match by:
        case "name" | "module":
            return frame.name
        case "line":
            return f"{frame.file}:{frame.line}"
        case "path":
            return " > ".join(each.name for each in profile.path(node)[1:])


def _maxima(group: Ints, values: Ints, count: int) -> Ints:
    result = np.full(count, np.iinfo(np.int64).min)
    np.maximum.at(result, group, values)
    return result
