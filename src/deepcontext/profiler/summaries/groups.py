"""Tables of groups: all frames of one operator, module, scope or kernel, or of one source line.

The only place that computes the tables of all views; nothing is formatted or printed. `operators.py`,
`modules.py`, `scopes.py`, `gpu.py` and `lines.py` define the groups. Works on whole columns: for a
profile of a million nodes, a table takes well under a second.

Invariants: the `inclusive` of a group counts a node once, however often the group is nested in
itself (a recursive function, a module inside the same module); the `exclusive` values of the groups
of one table, plus the value outside all groups, add up to the profile's total.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.format.metric import CALL_DURATION_NS, HOST_TIME_NS
from deepcontext.profiler.model.grouping import NO_GROUP, Groups, Spread, Spreads, sums, topmost
from deepcontext.profiler.model.metric_values import summed
from deepcontext.profiler.model.tree import NO_NODE
from deepcontext.profiler.summaries.phases import PHASES, shown_phase

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from deepcontext.profiler.model.profile_model import ProfileModel as Profile
    from deepcontext.profiler.model.tree import Tree

    Ints = npt.NDArray[np.int64]
    Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Group:
    """All frames of one name (operator, module, scope), or all visits to one source line.

    Attributes:
        name: operator, module or scope; for a source line its function.
        file: source file of a line, "" for the other groups.
        line: 1-based line, 0 for the other groups.
        inclusive: the metric with all descendants, each node once; backward operators are
            descendants of their forward operator.
        exclusive: the metric without nested groups of the same table.
        phases: `inclusive` by phase, in the order of `PHASES`; sums to `inclusive`.
        contexts: number of nodes of the tree.
        calls: elapsed ns per call, or None where calls are not timed (modules, lines).
    """

    name: str
    file: str
    line: int
    inclusive: int
    exclusive: int
    phases: tuple[int, ...]
    contexts: int
    calls: Spread | None


@dataclass(frozen=True, slots=True)
class GroupTable:
    """The largest groups of a profile.

    Attributes:
        rows: largest first.
        row_count: number of groups, shown or not.
        total: the metric's sum over the whole profile, the denominator of shares.
    """

    rows: tuple[Group, ...]
    row_count: int
    total: int


@dataclass(frozen=True, slots=True)
class FrameGroups:
    """Which frames form which group of a table.

    Attributes:
        of_frame: group of each frame or `NO_GROUP`, shape (frames,).
        example: the first frame of each group, ascending, shape (groups,).
    """

    of_frame: Ints
    example: Ints

    @classmethod
    def of_frames(cls, mask: Mask, value: Ints) -> FrameGroups:
        """Group the frames in `mask` that have the same `value`, in the order of their first frames."""
        members = np.flatnonzero(mask)
        groups = Groups.of(value[members])
        first = groups.first(members)
        order = np.argsort(first)
        number = np.empty(len(order), np.int64)
        number[order] = np.arange(len(order))
        of_frame = np.full(len(mask), NO_GROUP, np.int64)
        of_frame[members] = number[groups.of_row()]
        return cls(of_frame, first[order])


@dataclass(frozen=True, slots=True)
class Grouping:
    """One way to group the frames of a profile; calling it returns the rows.

    Attributes:
        kind: kind of the frames.
        largest: the value that rows are ordered by, "inclusive" or "exclusive".
        groups: which frames form which group; None groups the frames of the kind by name.
        only_with_value: leave out groups whose inclusive value is 0.
    """

    kind: FrameKind
    largest: str
    groups: Callable[[Profile], FrameGroups] | None = None
    only_with_value: bool = False

    def __call__(
        self,
        profile: Profile,
        metric: str = HOST_TIME_NS.name,
        limit: int = 0,
        *,
        largest: str = "",
    ) -> GroupTable:
        """Return the value of each group.

        Args:
            profile: what to aggregate.
            metric: name of a summed metric.
            limit: number of rows, 0 for all.
            largest: another order of the rows.
        """
        values = profile.once(
            (self, metric), lambda: GroupValues.of(profile, self.of_frames(profile), metric)
        )
        return values.table(
            profile, limit, largest or self.largest, only_with_value=self.only_with_value
        )

    def of_frames(self, profile: Profile) -> FrameGroups:
        """Return which frames form which group."""
        if self.groups is not None:
            return self.groups(profile)
        frames = profile.frames
        return FrameGroups.of_frames(frames.kind == self.kind, frames.name.astype(np.int64))


@dataclass(frozen=True, slots=True, eq=False)
class GroupValues:
    """A metric of every group of a table.

    Attributes:
        groups: which frames form which group.
        exclusive: value without nested groups, shape (groups,).
        phases: value with descendants by phase, shape (len(PHASES), groups).
        contexts: number of nodes of each group, shape (groups,).
        calls: elapsed ns per call, or None where calls are not timed.
        total: the metric's sum over the whole profile.
    """

    groups: FrameGroups
    exclusive: Ints
    phases: Ints
    contexts: Ints
    calls: Spreads | None
    total: int

    @classmethod
    def of(cls, profile: Profile, groups: FrameGroups, metric: str) -> GroupValues:
        """Compute the values of a summed metric."""
        count = len(groups.example)
        group = groups.of_frame[profile.tree.frame]
        exclusive = summed(profile, metric)
        return cls(
            groups,
            _exclusive_sums(profile.tree, group, exclusive, count),
            _phase_sums(profile.tree, group, exclusive, count),
            np.bincount(group[group != NO_GROUP], minlength=count),
            _calls(profile, group, count),
            int(exclusive.sum()),
        )

    def table(
        self, profile: Profile, limit: int, largest: str, *, only_with_value: bool = False
    ) -> GroupTable:
        """Return the largest groups.

        Args:
            profile: the profile of the groups.
            limit: number of rows, 0 for all.
            largest: the value that rows are ordered by, "inclusive" or "exclusive".
            only_with_value: leave out groups whose inclusive value is 0.
        """
        inclusive = self.phases.sum(axis=0)
        ranking = inclusive if largest == "inclusive" else self.exclusive
        # Descending; ties in the order in which the program reached the groups.
        order = np.lexsort((self.groups.example, -ranking))
        if only_with_value:
            order = order[inclusive[order] != 0]
        shown = order[: limit or None].tolist()
        rows = tuple(self._row(profile, index, int(inclusive[index])) for index in shown)
        return GroupTable(rows, len(order), self.total)

    def _row(self, profile: Profile, index: int, inclusive: int) -> Group:
        frame = profile.frames[int(self.groups.example[index])]
        is_line = frame.kind is FrameKind.PYTHON
        return Group(
            name=frame.name,
            file=frame.file if is_line else "",
            line=frame.line if is_line else 0,
            inclusive=inclusive,
            exclusive=int(self.exclusive[index]),
            phases=tuple(self.phases[:, index].tolist()),
            contexts=int(self.contexts[index]),
            calls=None if self.calls is None else self.calls.spread(index),
        )


def _exclusive_sums(tree: Tree, group: Ints, exclusive: Ints, count: int) -> Ints:
    nearest = tree.nearest(group != NO_GROUP)
    has_group = nearest != NO_NODE
    return sums(group[nearest[has_group]], exclusive[has_group], count)


def _phase_sums(tree: Tree, group: Ints, exclusive: Ints, count: int) -> Ints:
    """Return inclusive sums by phase and group, shape (len(PHASES), groups)."""
    top = topmost(tree, group)
    group_of_top, end_of_top = group[top], tree.subtree_end[top]
    phase = shown_phase(tree)
    found = np.zeros((len(PHASES), count), np.int64)
    before = np.zeros(len(tree) + 1, np.int64)
    for row, each in enumerate(PHASES):
        is_phase = phase == each
        if is_phase.any():
            np.cumsum(np.where(is_phase, exclusive, 0), out=before[1:])
            found[row] = sums(group_of_top, before[end_of_top] - before[top], count)
    return found


def _calls(profile: Profile, group: Ints, count: int) -> Spreads | None:
    rows = profile.metrics.get(CALL_DURATION_NS.name)
    return None if rows is None else Spreads.of_rows(rows, group[rows.node], count)
