"""The points of a roofline plot: lines, modules and operators, with what limits each.

Figures are those of `operator_work.py` (PyTorch, ``--shapes``) and of `jax/operations.py`. Draws and formats
nothing. Invariant: the points of a group and the operators without a line (or module) add up to the whole.

Source: Williams, Waterman and Patterson, "Roofline: An Insightful Visual Performance Model for Multicore
Architectures", CACM 52(4), 2009.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.model.grouping import NO_GROUP, Groups
from deepcontext.profiler.model.operator_inputs import without_inputs
from deepcontext.profiler.model.place import Place
from deepcontext.profiler.model.tree import NO_NODE
from deepcontext.profiler.summaries.lines import UserLines
from deepcontext.profiler.summaries.operator_work import operator_work

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from deepcontext.profiler.model.profile_model import ProfileModel as Profile
    from deepcontext.profiler.summaries.operator_work import OperatorWork, Work
    from deepcontext.profiler.summaries.roof import Roof

    Ints = npt.NDArray[np.int64]
    Mask = npt.NDArray[np.bool_]

# What can limit an operator; "unknown" without its bytes, or without peaks for its type.
LAUNCH: Final = "launch"
LIMITS: Final = ("compute", "memory", LAUNCH, "unknown")
_COMPUTE, _MEMORY, _LAUNCH, _UNKNOWN = range(len(LIMITS))
KINDS: Final = (
    "matrix products",
    "convolutions",
    "attention",
    "recurrent layers",
    "fusions",
    "collectives",
    "other operators",
)
PRODUCTS, CONVOLUTIONS, ATTENTION, RECURRENT, FUSIONS, COLLECTIVES, OTHERS = range(len(KINDS))
# An operator costs some microseconds before it computes anything, on a CPU and on a GPU.
_LAUNCH_NS: Final = 10_000
# A short call that needs half of its time at the roof is not explained by its launch.
_LAUNCH_PEAK: Final = 0.5


@dataclass(frozen=True, slots=True)
class Point:
    """One point of the plot.

    Attributes:
        place: what it stands for: a line, or the name of a module, operator or program without a line.
        work: of its operators, their backward included.
        limit_ns: time of its operators by what limits them, in the order of `LIMITS`.
        kind: index into `KINDS` of the operators that take most of its time.
        node: the node to show: of the line, module or operator where most of the time is.
    """

    place: Place
    work: Work
    limit_ns: tuple[int, ...]
    kind: int
    node: int

    @property
    def limit(self) -> str:
        """What limits the operators that take most of the time."""
        return LIMITS[self.limit_ns.index(max(self.limit_ns))]


@dataclass(frozen=True, slots=True)
class Roofline:
    """The points of one framework.

    Attributes:
        points: by the name of what a point stands for ("line", "module", "operator"), each most time
            first; a group without points is left out.
        total: all operators.
        types: element types of the operators that compute, most operations first.
        roof: the peaks; None where they are not known.
        is_on_gpu: whether times are those of kernels.
    """

    points: dict[str, tuple[Point, ...]]
    total: Work
    types: tuple[str, ...]
    roof: Roof | None
    is_on_gpu: bool


@dataclass(frozen=True, slots=True, eq=False)
class Membership:
    """Which operator belongs to which point.

    Attributes:
        places: of each point.
        of_operator: index of each operator's point or `NO_GROUP`, shape (operators,), int64.
        node: the node that each operator shows, shape (operators,), int64.
    """

    places: Sequence[Place]
    of_operator: Ints
    node: Ints


def torch_roofline(profile: Profile) -> Roofline | None:
    """Return the points of PyTorch's operators; None without shapes and types. Computed once."""
    work = operator_work(profile)
    if work is None or np.isnan(work.bytes).all():
        return None
    return profile.once("torch roofline", lambda: _of_torch(profile, work))


def _of_torch(profile: Profile, work: OperatorWork) -> Roofline:
    groups = {
        "line": _by_line(profile, work),
        "module": _by_module(profile, work),
        "operator": _by_operator(profile, work),
    }
    names = profile.frames.name[profile.tree.frame[work.nodes]].tolist()
    strings = profile.frames.strings
    kind_of = {each: _kind(without_inputs(strings[int(each)])) for each in set(names)}
    kinds = np.array([kind_of[each] for each in names], np.int64)
    return roofline(work, groups, np.where(work.flops > 0, kinds, OTHERS))


def roofline(work: OperatorWork, groups: dict[str, Membership], kinds: Ints) -> Roofline:
    """Add up operators to points.

    Args:
        work: the operators.
        groups: which operator belongs to which point.
        kinds: index into `KINDS` of each operator, shape (operators,), int64.
    """
    limits = _limits(work)
    points = {name: _points(work, each, limits, kinds) for name, each in groups.items()}
    flops: dict[str, float] = {}
    for kind, value in zip(work.types, work.flops.tolist(), strict=True):
        if value:
            flops[kind] = flops.get(kind, 0.0) + value
    return Roofline(
        points={name: found for name, found in points.items() if found},
        total=work.total(np.ones(len(work.nodes), np.bool_)),
        types=tuple(sorted(flops, key=lambda kind: -flops[kind])),
        roof=work.roof,
        is_on_gpu=work.is_on_gpu,
    )


def _limits(work: OperatorWork) -> Ints:
    """Return what limits each operator, as an index into `LIMITS`, shape (operators,)."""
    count = len(work.nodes)
    computing = work.roof.least_ns(work.flops, np.zeros(count), work.types) if work.roof else None
    found = np.full(count, _UNKNOWN, np.int64)
    if computing is not None:
        is_known = ~np.isnan(work.bytes) & (work.least_ns > 0)
        # The least time is the larger one of both.
        is_computing = is_known & (computing >= work.least_ns)
        found[is_known] = np.where(is_computing, _COMPUTE, _MEMORY)[is_known]
    is_short = work.time_ns < _LAUNCH_NS * work.calls
    found[is_short & ~(work.least_ns >= _LAUNCH_PEAK * work.time_ns)] = _LAUNCH
    return found


def _points(work: OperatorWork, group: Membership, limits: Ints, kinds: Ints) -> tuple[Point, ...]:
    which = group.of_operator != NO_GROUP
    member, count = group.of_operator[which], len(group.places)
    time = work.time_ns[which]
    by_limit = _table(member, limits[which], time, (count, len(LIMITS)))
    by_kind = _table(member, kinds[which], time, (count, len(KINDS)))
    node = _costliest(member, group.node[which], time, count)
    rows = (
        Point(place, done, tuple(limit_ns), kind, shown)
        for place, done, limit_ns, kind, shown in zip(
            group.places,
            work.sums(member, which, count),
            by_limit.tolist(),
            np.argmax(by_kind, axis=1).tolist(),
            node.tolist(),
            strict=True,
        )
    )
    return tuple(sorted(rows, key=lambda each: -each.work.time_ns))


def _table(row: Ints, column: Ints, values: Ints, shape: tuple[int, int]) -> Ints:
    """Return sums by row and column, int64."""
    flat = np.bincount(
        row * shape[1] + column, weights=values.astype(np.float64), minlength=shape[0] * shape[1]
    )
    return flat.astype(np.int64).reshape(shape)


def _costliest(member: Ints, node: Ints, time: Ints, count: int) -> Ints:
    """Return the node of each point at which the operators take most time, shape (points,)."""
    pairs = Groups.of(member, node)
    points = Groups.of(pairs.keys[0], largest=pairs.sums(time))
    found = np.zeros(count, np.int64)
    found[points.key] = points.first(pairs.keys[1])
    return found


def _by_line(profile: Profile, work: OperatorWork) -> Membership:
    lines = UserLines.of(profile)
    is_line = profile.is_user_code()[profile.tree.frame]
    line = lines.of_node[work.nodes]
    groups = Groups.of(line[line != NO_GROUP])
    of_operator = np.full(len(work.nodes), NO_GROUP, np.int64)
    of_operator[line != NO_GROUP] = groups.of_row()
    frames = [lines.frame_of(profile, each) for each in groups.key.tolist()]
    places = [Place.at(each) for each in frames]
    return Membership(places, of_operator, _nearest(profile, is_line, work.nodes))


def _by_module(profile: Profile, work: OperatorWork) -> Membership:
    """Group operators by the innermost module that they run in."""
    tree = profile.tree
    nearest = _nearest(profile, profile.is_kind(FrameKind.MODULE), work.nodes)
    is_inside = nearest != NO_NODE
    name = profile.frames.name[tree.frame[nearest[is_inside]]]
    return _named(profile, work, is_inside, name, nearest)


def _by_operator(profile: Profile, work: OperatorWork) -> Membership:
    name = profile.frames.name[profile.tree.frame[work.nodes]]
    return _named(profile, work, np.ones(len(name), np.bool_), name, work.nodes)


def _named(
    profile: Profile, work: OperatorWork, which: Mask, name: npt.NDArray[np.integer], node: Ints
) -> Membership:
    found, member = np.unique(name, return_inverse=True)
    of_operator = np.full(len(work.nodes), NO_GROUP, np.int64)
    of_operator[which] = np.ravel(member)
    places = [Place(profile.frames.strings[int(each)], "", 0) for each in found.tolist()]
    return Membership(places, of_operator, node)


def _nearest(profile: Profile, mask: Mask, nodes: Ints) -> Ints:
    return np.asarray(profile.tree.nearest(mask)[nodes], np.int64)


def _kind(name: str) -> int:
    """Return what an operator of PyTorch that computes is, as an index into `KINDS`."""
    for part, kind in (("attention", ATTENTION), ("rnn", RECURRENT), ("conv", CONVOLUTIONS)):
        if part in name:
            return kind
    return PRODUCTS
