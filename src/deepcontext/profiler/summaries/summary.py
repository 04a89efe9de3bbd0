"""Aggregate a profile by operator, module, scope, source line and phase.

What every view shows as a table is computed here and nowhere else; nothing is formatted or printed.
Works on whole columns: a profile of a million nodes takes well under a second a table.

Invariants: the `inclusive` of a group counts a node once, however often the group is nested in
itself (a recursive function, a module inside the same module); the `exclusive` values of the groups
of one table and what lies outside all of them add up to the profile's total.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from deepcontext.errors import QueryError
from deepcontext.profiler.format.frame import FrameKind, Phase
from deepcontext.profiler.format.metric import (
    CALL_DURATION_NS,
    HOST_TIME_NS,
    STEP_TIME_NS,
    Aggregation,
)
from deepcontext.profiler.model.grouping import NO_GROUP, Spread, Spreads, sums, topmost
from deepcontext.profiler.model.source import is_user_file
from deepcontext.profiler.model.tree import NO_NODE

if TYPE_CHECKING:
    import numpy.typing as npt

    from deepcontext.profiler.model.profile_model import ProfileModel as Profile
    from deepcontext.profiler.model.tree import Tree

    Ints = npt.NDArray[np.int64]
    Mask = npt.NDArray[np.bool_]

# The order in which views list the phases; what has no phase is shown as `OTHER`.
PHASES: Final = (
    Phase.FORWARD,
    Phase.BACKWARD,
    Phase.RECOMPUTE,
    Phase.OPTIMIZER,
    Phase.DATA_LOADING,
    Phase.OTHER,
)


@dataclass(frozen=True, slots=True)
class Group:
    """All frames of one name (operator, module, scope), or all visits to one source line.

    Attributes:
        name: operator, module or scope; for a source line the function it belongs to.
        file: source file of a line, "" for the other groups.
        line: 1-based line, 0 for the other groups.
        inclusive: the metric with everything below, each node once; the backward operators that a
            forward operator caused are below it.
        exclusive: the metric without what a nested group of the same table accounts for.
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
        row_count: number of groups there are, shown or not.
        total: the metric's sum over the whole profile, what shares are shares of.
    """

    rows: tuple[Group, ...]
    row_count: int
    total: int


@dataclass(frozen=True, slots=True)
class ModuleClass:
    """All modules of one class.

    Attributes:
        name: of the class, ``Linear``.
        instances: how many of them were called.
        exclusive: the metric in them, without modules inside them.
    """

    name: str
    instances: int
    exclusive: int


@dataclass(frozen=True, slots=True)
class PhaseRow:
    """What one phase of the program took.

    Attributes:
        phase: never `Phase.NONE`.
        value: sum of the metric over the nodes of this phase.
        operator_calls: number of operator calls.
    """

    phase: Phase
    value: int
    operator_calls: int


def by_operator(profile: Profile, metric: str = HOST_TIME_NS.name, limit: int = 0) -> GroupTable:
    """Aggregate by operator name, largest exclusive value first; `limit` 0 gives all."""
    return _by_name(profile, FrameKind.OPERATOR, metric, limit, largest="exclusive")


def by_module(profile: Profile, metric: str = HOST_TIME_NS.name, limit: int = 0) -> GroupTable:
    """Aggregate by module instance, largest inclusive value first; `limit` 0 gives all."""
    return _by_name(profile, FrameKind.MODULE, metric, limit, largest="inclusive")


def by_module_class(profile: Profile, metric: str = HOST_TIME_NS.name) -> tuple[ModuleClass, ...]:
    """Add up the modules of each class, largest exclusive value first."""
    found: dict[str, list[int]] = {}
    for row in by_module(profile, metric).rows:
        found.setdefault(row.name.partition(" '")[0], []).append(row.exclusive)
    rows = (ModuleClass(name, len(values), sum(values)) for name, values in found.items())
    return tuple(sorted(rows, key=lambda row: (-row.exclusive, row.name)))


def by_scope(profile: Profile, metric: str = HOST_TIME_NS.name, limit: int = 0) -> GroupTable:
    """Aggregate by scope name, largest inclusive value first; `limit` 0 gives all."""
    return _by_name(profile, FrameKind.SCOPE, metric, limit, largest="inclusive")


def by_kernel(profile: Profile, metric: str = HOST_TIME_NS.name, limit: int = 0) -> GroupTable:
    """Aggregate by kernel name, largest exclusive value first; `limit` 0 gives all."""
    return _by_name(profile, FrameKind.KERNEL, metric, limit, largest="exclusive")


def by_line(
    profile: Profile,
    metric: str = HOST_TIME_NS.name,
    limit: int = 0,
    *,
    largest: str = "inclusive",
) -> GroupTable:
    """Aggregate by line of the user's own source files (`is_user_file`).

    Args:
        profile: what to aggregate.
        metric: name of a summed metric.
        limit: number of rows, 0 for all.
        largest: what the rows are ordered by, "inclusive" or "exclusive". The exclusive value of a
            line is what no deeper line of the user's own code accounts for.
    """
    frames = profile.frames
    position = (_integers(frames.file) << 32) | frames.line
    grouping = _Grouping.of_frames(user_frames(profile), position)
    # A line that was only sampled has nothing of this metric.
    return _aggregate(profile, grouping, metric, limit, largest, only_with_value=True)


def by_phase(profile: Profile, metric: str = HOST_TIME_NS.name) -> tuple[PhaseRow, ...]:
    """Split the metric by phase, in the order of `PHASES`; the values sum to the total."""
    phase = shown_phase(profile.tree)
    exclusive = summed(profile, metric)
    values = sums(phase, exclusive, len(Phase))
    calls = np.zeros(len(Phase), np.int64)
    rows = profile.metrics.get(CALL_DURATION_NS.name)
    if rows is not None:
        called = _is_kind(profile, FrameKind.OPERATOR)[rows.node]
        calls = sums(phase[rows.node[called]], _integers(rows.count[called]), len(Phase))
    return tuple(PhaseRow(row, int(values[row]), int(calls[row])) for row in PHASES)


def user_frames(profile: Profile) -> Mask:
    """Say of each frame whether it is a Python frame of the user's own code, shape (frames,)."""
    frames = profile.frames
    python = frames.kind == FrameKind.PYTHON
    files = np.unique(frames.file[python])
    own = np.array([file for file in files if is_user_file(frames.strings[int(file)])], np.int64)
    return np.asarray(python & np.isin(frames.file, own))


def steps(profile: Profile) -> Spread | None:
    """Return how the times between two `step()` marks are distributed, None without steps."""
    rows = profile.metrics.get(STEP_TIME_NS.name)
    if rows is None or not len(rows.node):
        return None
    return Spreads.of_rows(rows, np.zeros(len(rows.node), np.int64), 1).spread(0)


def operator_time(profile: Profile, metric: str = HOST_TIME_NS.name) -> int:
    """Return the sum of the metric over operator nodes: the total without scopes of Python code."""
    return int(summed(profile, metric)[_is_kind(profile, FrameKind.OPERATOR)].sum())


def summed(profile: Profile, metric: str) -> Ints:
    """Return the exclusive values of a metric that adds up over nodes, shape (nodes,), int64.

    Raises:
        QueryError: the profile has no such metric, or it describes single nodes.
    """
    values = profile.exclusive(metric)
    if profile.metrics[metric].descriptor.aggregation is not Aggregation.SUM:
        known = [
            name
            for name, rows in profile.metrics.items()
            if rows.descriptor.aggregation is Aggregation.SUM
        ]
        raise QueryError(
            f"metric '{metric}' describes single nodes and does not add up; "
            f"those that do: {', '.join(sorted(known)) or 'none'}"
        )
    return _integers(values)


@dataclass(frozen=True, slots=True)
class _Grouping:
    """Which frames form which group.

    Attributes:
        of_frame: group of each frame or `NO_GROUP`, shape (frames,).
        example: the first frame of each group, shape (groups,).
    """

    of_frame: Ints
    example: Ints

    @classmethod
    def of_frames(cls, mask: Mask, value: Ints) -> _Grouping:
        """Group the frames in `mask` that have the same `value`."""
        members = np.flatnonzero(mask)
        _, first, inverse = np.unique(value[members], return_index=True, return_inverse=True)
        of_frame = np.full(len(mask), NO_GROUP, np.int64)
        of_frame[members] = inverse
        return cls(of_frame, members[first])


def _by_name(
    profile: Profile, kind: FrameKind, metric: str, limit: int, *, largest: str
) -> GroupTable:
    mask = profile.frames.kind == kind
    grouping = _Grouping.of_frames(mask, _integers(profile.frames.name))
    return _aggregate(profile, grouping, metric, limit, largest)


def _aggregate(
    profile: Profile,
    grouping: _Grouping,
    metric: str,
    limit: int,
    largest: str,
    *,
    only_with_value: bool = False,
) -> GroupTable:
    count = len(grouping.example)
    group = grouping.of_frame[profile.tree.frame]
    exclusive = summed(profile, metric)
    own = _own_sums(profile.tree, group, exclusive, count)
    phases = _phase_sums(profile.tree, group, exclusive, count)
    inclusive = phases.sum(axis=0)
    ranking = inclusive if largest == "inclusive" else own
    # Descending; ties in the order in which the program came to them.
    order = np.lexsort((grouping.example, -ranking))
    if only_with_value:
        order = order[inclusive[order] != 0]
    row_count, order = len(order), order[: limit or None]
    contexts = np.bincount(group[group != NO_GROUP], minlength=count)
    calls = _calls(profile, group, count)
    rows = []
    for index in order.tolist():
        frame = profile.frames[int(grouping.example[index])]
        is_line = frame.kind is FrameKind.PYTHON
        row = Group(
            name=frame.name,
            file=frame.file if is_line else "",
            line=frame.line if is_line else 0,
            inclusive=int(inclusive[index]),
            exclusive=int(own[index]),
            phases=tuple(phases[:, index].tolist()),
            contexts=int(contexts[index]),
            calls=None if calls is None else calls.spread(index),
        )
        rows.append(row)
    return GroupTable(tuple(rows), row_count, int(exclusive.sum()))


def _own_sums(tree: Tree, group: Ints, exclusive: Ints, count: int) -> Ints:
    nearest = tree.nearest(group != NO_GROUP)
    owned = nearest != NO_NODE
    return sums(group[nearest[owned]], exclusive[owned], count)


def _phase_sums(tree: Tree, group: Ints, exclusive: Ints, count: int) -> Ints:
    """Return inclusive sums by phase and group, shape (len(PHASES), groups)."""
    top = topmost(tree, group)
    phase = shown_phase(tree)
    of_phase = [tree.inclusive(np.where(phase == each, exclusive, 0)) for each in PHASES]
    return np.stack([sums(group[top], inclusive[top], count) for inclusive in of_phase])


def shown_phase(tree: Tree) -> npt.NDArray[np.uint8]:
    """Return the phase each node is counted under, shape (nodes,), uint8; see `PHASES`."""
    return np.where(tree.phase == Phase.NONE, np.uint8(Phase.OTHER), tree.phase)


def _is_kind(profile: Profile, kind: FrameKind) -> Mask:
    return np.asarray(profile.frames.kind[profile.tree.frame] == kind)


def _integers(values: npt.NDArray[Any]) -> Ints:
    return values.astype(np.int64)


def _calls(profile: Profile, group: Ints, count: int) -> Spreads | None:
    rows = profile.metrics.get(CALL_DURATION_NS.name)
    return None if rows is None else Spreads.of_rows(rows, group[rows.node], count)
