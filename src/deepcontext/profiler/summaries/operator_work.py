"""What the operators of PyTorch compute and move, in what time: by node, by line, and by operator and shapes.

Needs a profile recorded with ``--shapes``. Which operators count is the matter of `model/flops.py` and
`model/bytes_moved.py`; the time is that of the same operators, on the GPU if they ran there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from deepcontext.profiler.format.metric import CALL_DURATION_NS, GPU_TIME_NS
from deepcontext.profiler.model.bytes_moved import operator_bytes
from deepcontext.profiler.model.flops import operator_flops
from deepcontext.profiler.model.grouping import NO_GROUP, Groups
from deepcontext.profiler.model.place import Place
from deepcontext.profiler.model.recorded_operators import has_shapes
from deepcontext.profiler.summaries.lines import UserLines
from deepcontext.profiler.summaries.roof import roof_of

if TYPE_CHECKING:
    import numpy.typing as npt

    from deepcontext.profiler.model.profile_model import ProfileModel as Profile
    from deepcontext.profiler.model.recorded_operators import CountedOperators
    from deepcontext.profiler.summaries.roof import Roof

    Ints = npt.NDArray[np.int64]
    Floats = npt.NDArray[np.float64]
    Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Work:
    """What some operators compute and move, and the time they took.

    Attributes:
        flops: floating-point operations; a multiplication and an addition are two.
        time_ns: time of the operators, ns, summed over threads; 0 where it was not measured.
        calls: calls of the operators.
        bytes: read and written at least; 0 where not known.
        of_peak: share of the time that the machine needs at its peaks, 0 to 1 (more where data is in
            caches); None where the peaks are not known.
    """

    flops: float
    time_ns: int
    calls: int
    bytes: float = 0.0
    of_peak: float | None = None

    @property
    def flops_per_second(self) -> float:
        """Attained rate, 0 without a time."""
        return self.flops / self.time_ns * 1e9 if self.time_ns else 0.0

    @property
    def bytes_per_second(self) -> float:
        """Attained rate, 0 without a time."""
        return self.bytes / self.time_ns * 1e9 if self.time_ns else 0.0

    @property
    def intensity(self) -> float:
        """Arithmetic intensity in flop per byte, 0 where bytes are not known."""
        return self.flops / self.bytes if self.bytes else 0.0


@dataclass(frozen=True, slots=True)
class LineWork(Place):
    """What the operators of one line of the user's code do, their backward included.

    Attributes:
        work: without deeper lines of the user's code.
    """

    work: Work


@dataclass(frozen=True, slots=True)
class ShapeWork:
    """What all calls of one operator with the same shapes do.

    Attributes:
        name: of the operator, with the shapes of its inputs.
        work: of all calls.
    """

    name: str
    work: Work


@dataclass(frozen=True, slots=True, eq=False)
class OperatorWork:
    """Columns over counted operators, all of shape (operators,) in the order of their nodes.

    Attributes:
        nodes: ids, int64.
        flops: of all calls, float64; 0 for operators that move data only.
        bytes: of all calls, float64; NaN where not known.
        time_ns: of all calls, int64.
        calls: int64.
        least_ns: time that the machine needs at its peaks, float64; NaN where not known.
        types: element types.
        is_on_gpu: whether times are those of kernels.
        roof: what `least_ns` is computed with.
        uncounted: operators that may move data, of which nothing is known, int64.
    """

    nodes: Ints
    flops: Floats
    bytes: Floats
    time_ns: Ints
    calls: Ints
    least_ns: Floats
    types: tuple[str, ...]
    is_on_gpu: bool
    roof: Roof | None
    uncounted: Ints

    def total(self, which: Mask) -> Work:
        """Return the sum over some operators."""
        return self.sums(np.zeros(int(which.sum()), np.int64), which, 1)[0]

    def lines(self, profile: Profile, which: Mask) -> list[LineWork]:
        """Return the sums by line of the user's code."""
        lines = UserLines.of(profile)
        line = lines.of_node[self.nodes]
        which = which & (line != NO_GROUP)
        groups = Groups.of(line[which])
        works = self.sums(groups.of_row(), which, len(groups))
        frames = (lines.frame_of(profile, each) for each in groups.key.tolist())
        return [LineWork.at(frame, work) for frame, work in zip(frames, works, strict=True)]

    def shapes(self, profile: Profile, which: Mask) -> list[ShapeWork]:
        """Return the sums by operator and shapes."""
        frames = profile.frames
        name = frames.name[profile.tree.frame[self.nodes[which]]]
        groups = Groups.of(name)
        works = self.sums(groups.of_row(), which, len(groups))
        texts = (frames.strings[int(each)] for each in groups.key)
        return [ShapeWork(text, work) for text, work in zip(texts, works, strict=True)]

    def sums(self, group: Ints, which: Mask, count: int) -> list[Work]:
        """Return the sum over each group.

        Args:
            group: of each operator in `which`, from 0 up.
            which: operators to include, shape (operators,).
            count: number of groups.
        """
        is_known = ~np.isnan(self.least_ns[which]) & (self.time_ns[which] > 0)
        time = self.time_ns[which].astype(np.float64)
        columns = [
            np.bincount(group, weights=each, minlength=count).tolist()
            for each in (
                self.flops[which],
                time,
                self.calls[which].astype(np.float64),
                np.nan_to_num(self.bytes[which]),
                np.where(is_known, self.least_ns[which], 0.0),
                np.where(is_known, time, 0.0),
            )
        ]
        return [
            Work(flops, round(time_ns), round(calls), moved, least / timed if timed else None)
            for flops, time_ns, calls, moved, least, timed in zip(*columns, strict=True)
        ]


def operator_work(profile: Profile) -> OperatorWork | None:
    """Return what the operators of a profile do; None without shapes. Computed once."""
    calls = profile.metrics.get(CALL_DURATION_NS.name)
    if calls is None or not has_shapes(profile.frames):
        return None
    return profile.once("operator work", lambda: _computed(profile))


def flops_of(profile: Profile) -> CountedOperators:
    """Return the floating-point operations of a profile with shapes. Computed once."""
    calls = profile.metrics[CALL_DURATION_NS.name]
    return profile.once(
        "operator flops", lambda: operator_flops(profile.frames, profile.tree, calls)
    )


def _computed(profile: Profile) -> OperatorWork:
    calls_of = profile.metrics[CALL_DURATION_NS.name]
    computing, moving = flops_of(profile), operator_bytes(profile.frames, profile.tree, calls_of)
    nodes = np.union1d(computing.nodes, moving.nodes)
    of_computing = np.searchsorted(nodes, computing.nodes)
    of_moving = np.searchsorted(nodes, moving.nodes)
    flops, moved = np.zeros(len(nodes)), np.full(len(nodes), np.nan)
    flops[of_computing] = computing.values
    moved[of_moving] = moving.values
    calls = np.zeros(len(nodes), np.int64)
    calls[of_computing], calls[of_moving] = computing.calls, moving.calls
    types = dict(zip(moving.nodes.tolist(), moving.types, strict=True))
    types |= dict(zip(computing.nodes.tolist(), computing.types, strict=True))
    ordered = tuple(types[node] for node in nodes.tolist())
    time, is_on_gpu = _time(profile, nodes)
    roof = roof_of(profile, on_gpu=is_on_gpu)
    least = roof.least_ns(flops, moved, ordered) if roof else np.full(len(nodes), np.nan)
    uncounted = np.setdiff1d(moving.unknown, nodes)
    return OperatorWork(
        nodes, flops, moved, time, calls, least, ordered, is_on_gpu, roof, uncounted
    )


def _time(profile: Profile, nodes: Ints) -> tuple[Ints, bool]:
    """Return the time of operators without their backward, ns, and whether it is a GPU's."""
    if GPU_TIME_NS.name in profile.metrics:
        on_gpu = time_in_own_phase(profile, profile.exclusive(GPU_TIME_NS.name), nodes)
        if on_gpu.any():
            return on_gpu, True
    # A call of a forward operator does not contain its backward.
    return profile.exclusive(CALL_DURATION_NS.name)[nodes], False


def time_in_own_phase(profile: Profile, values: Ints, nodes: Ints) -> Ints:
    """Return the sum of values at and below each node, of nodes of the same phase."""
    tree = profile.tree
    found = np.zeros(len(nodes), np.int64)
    for phase in np.unique(tree.phase[nodes]):
        of_phase = tree.phase[nodes] == phase
        inclusive = tree.inclusive(np.where(tree.phase == phase, values, 0))
        found[of_phase] = inclusive[nodes[of_phase]]
    return found
