"""Why a kept step took longer than usual: the line, path, or pause between operators with most more time.

From the spans of threads. What a thread does between operators is known from samples only, which belong to
no step: such time is a pause, between two lines.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from deepcontext.profiler.model.exemplars import ExemplarReason
from deepcontext.profiler.model.grouping import NO_GROUP
from deepcontext.profiler.model.tree import NO_NODE
from deepcontext.profiler.summaries.lines import UserLines, nearest_user

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from deepcontext.profiler.format.frame import Frame
    from deepcontext.profiler.model.exemplars import Exemplar, Lane
    from deepcontext.profiler.model.profile import Profile

    Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Cause:
    """Where a step took most more time than usual.

    Attributes:
        line: the line of the user's code; None for a pause between operators, and for operators that
            no line of the user's code called.
        own_ns: time there in this step, without deeper lines.
        usual_ns: median of the same over the steps that were chosen at random.
        pause: of a pause, the lines of the last operator before and the first one after the longest
            one, each None where unknown; None for a line.
    """

    line: Frame | None
    own_ns: int
    usual_ns: int
    pause: tuple[Frame | None, Frame | None] | None = None


@dataclass(frozen=True, slots=True)
class PathExcess:
    """A call path, and its time in a step.

    Attributes:
        node: its last node.
        own_ns: time there in this step, without deeper operators.
        usual_ns: median of the same over the steps that were chosen at random.
    """

    node: int
    own_ns: int
    usual_ns: int

    @property
    def excess_ns(self) -> int:
        """How much more the step took there than a usual one."""
        return self.own_ns - self.usual_ns


@dataclass(slots=True)
class _Parts:
    """The time of one step: operators by node, shape (nodes,), and the pauses between operators."""

    own: Ints
    paused_ns: int = 0
    longest: tuple[Frame | None, Frame | None] = (None, None)


def slowest_kept(profile: Profile) -> list[Exemplar]:
    """Return the kept steps, slowest first."""
    return sorted(profile.exemplars, key=lambda each: -each.duration_ns)


def causes(profile: Profile, exemplars: Sequence[Exemplar]) -> list[Cause]:
    """Return the cause of each of these steps, compared with the random ones."""
    return [_cause(profile, each) for each in exemplars]


def path_excesses(profile: Profile, exemplar: Exemplar) -> list[PathExcess]:
    """Return the paths that take more time in a step than in a usual one, most more first."""
    own = _parts(profile, exemplar).own
    usual = _median([each.own for each in _usual(profile, exemplar)], own)
    order = np.argsort(usual - own, kind="stable")
    found = (PathExcess(node, int(own[node]), int(usual[node])) for node in order.tolist())
    return list(itertools.takewhile(lambda each: each.excess_ns > 0, found))


def _usual(profile: Profile, exemplar: Exemplar) -> list[_Parts]:
    """Return the steps that were kept at random, without this one."""
    random = (each for each in profile.exemplars if ExemplarReason.RANDOM in each.reasons)
    return [_parts(profile, each) for each in random if each != exemplar]


def _median(rows: Sequence[Ints], like: Ints) -> Ints:
    return np.rint(np.median(rows, axis=0)).astype(np.int64) if rows else np.zeros_like(like)


def _cause(profile: Profile, exemplar: Exemplar) -> Cause:
    lines, usual = UserLines.of(profile), _usual(profile, exemplar)

    def by_line(parts: _Parts) -> Ints:
        """Return the time by line, then without a line, then of pauses."""
        outside = parts.own[lines.of_node == NO_GROUP].sum()
        return np.append(lines.sums(parts.own), [outside, parts.paused_ns])

    parts = _parts(profile, exemplar)
    own = by_line(parts)
    common = _median([by_line(each) for each in usual], own)
    pause = len(own) - 1
    most = int(np.argmax(np.roll(own - common, 1))) - 1  # a pause before lines with as much
    most = pause if most < 0 else most
    frame = lines.frame_of(profile, most) if most < pause - 1 else None
    between = parts.longest if most == pause else None
    return Cause(frame, int(own[most]), int(common[most]), between)


def _parts(profile: Profile, exemplar: Exemplar) -> _Parts:
    return profile.once(("kept step", exemplar.place), lambda: _computed(profile, exemplar))


def _computed(profile: Profile, exemplar: Exemplar) -> _Parts:
    parts = _Parts(np.zeros(len(profile.tree), np.int64))
    nearest = nearest_user(profile)

    def line(node: int) -> Frame | None:
        user = int(nearest[node])
        return None if user == NO_NODE else profile.frame(user)

    lanes = [lane for lane in profile.lanes(exemplar) if lane.device is None]
    for lane in lanes:
        np.add.at(parts.own, lane.node, _exclusive(lane))
    _add_pauses(parts, exemplar, lanes, line)
    return parts


def _exclusive(lane: Lane) -> Ints:
    """Return the time of each span without the spans inside, shape (spans,), int64."""
    own = lane.duration_ns.copy()
    ends = (lane.begin_ns + lane.duration_ns).tolist()
    around: list[int] = []
    for place, begin in enumerate(lane.begin_ns.tolist()):
        while around and ends[around[-1]] <= begin:
            around.pop()
        if around:
            own[around[-1]] -= lane.duration_ns[place]
        around.append(place)
    return np.maximum(own, 0)


def _add_pauses(
    parts: _Parts, exemplar: Exemplar, lanes: Sequence[Lane], line: Callable[[int], Frame | None]
) -> None:
    """Note how long no thread was in an operator, and between which lines longest."""
    spans = sorted(
        (begin, begin + duration, node)
        for lane in lanes
        for begin, duration, node in zip(
            lane.begin_ns.tolist(), lane.duration_ns.tolist(), lane.node.tolist(), strict=True
        )
    )
    known_from = max((lane.known_from_ns for lane in lanes), default=0)
    longest, until = 0, known_from
    last: int | None = None
    after: list[tuple[int, int, int | None]] = [(exemplar.duration_ns, exemplar.duration_ns, None)]
    for begin, end, node in [*spans, *after]:
        if begin > until:
            parts.paused_ns += begin - until
            if begin - until > longest:
                longest = begin - until
                before = None if last is None else line(last)
                parts.longest = (before, None if node is None else line(node))
        if end >= until:
            until, last = end, node
