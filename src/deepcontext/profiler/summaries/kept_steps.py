"""Why a kept step took longer than usual: the line, or the pause between operators, with most more time.

From the spans of threads. What a thread does between operators is known from samples only, which belong to
no step: such time is a pause, between two lines.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from deepcontext.profiler.model.exemplars import ExemplarReason
from deepcontext.profiler.model.tree import NO_NODE
from deepcontext.profiler.summaries.lines import nearest_user

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from deepcontext.profiler.format.frame import Frame
    from deepcontext.profiler.model.exemplars import Exemplar, Lane
    from deepcontext.profiler.model.profile import Profile

    Ints = npt.NDArray[np.int64]

    # File and line of the user's code.
    Place = tuple[str, int]


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


@dataclass(slots=True)
class _Parts:
    """The time of one step: operators by line, and the pauses between operators."""

    lines: dict[Place | None, int] = field(default_factory=dict)
    frames: dict[Place | None, Frame | None] = field(default_factory=dict)
    paused_ns: int = 0
    longest: tuple[Frame | None, Frame | None] = (None, None)


def slowest_kept(profile: Profile) -> list[Exemplar]:
    """Return the kept steps, slowest first."""
    return sorted(profile.exemplars, key=lambda each: -each.duration_ns)


def causes(profile: Profile, exemplars: Sequence[Exemplar]) -> list[Cause]:
    """Return the cause of each of these steps, compared with the random ones."""
    random = [each for each in profile.exemplars if ExemplarReason.RANDOM in each.reasons]
    parts = {each.number: _parts(profile, each) for each in {*random, *exemplars}}
    return [
        _cause(parts[each.number], [parts[other.number] for other in random if other != each])
        for each in exemplars
    ]


def _cause(parts: _Parts, usual: Sequence[_Parts]) -> Cause:
    def median(values: Sequence[int]) -> int:
        return round(statistics.median(values)) if values else 0

    paused = median([each.paused_ns for each in usual])
    found = [Cause(None, parts.paused_ns, paused, parts.longest)]
    for place, own_ns in parts.lines.items():
        usual_ns = median([each.lines.get(place, 0) for each in usual])
        found.append(Cause(parts.frames[place], own_ns, usual_ns))
    return max(found, key=lambda each: each.own_ns - each.usual_ns)


def _parts(profile: Profile, exemplar: Exemplar) -> _Parts:
    parts = _Parts()
    nearest = nearest_user(profile)

    def line(node: int) -> Frame | None:
        user = int(nearest[node])
        return None if user == NO_NODE else profile.frame(user)

    lanes = [lane for lane in profile.lanes(exemplar) if lane.device is None]
    for lane in lanes:
        for node, own_ns in zip(lane.node.tolist(), _exclusive(lane).tolist(), strict=True):
            frame = line(node)
            place = None if frame is None else (frame.file, frame.line)
            parts.lines[place] = parts.lines.get(place, 0) + own_ns
            parts.frames[place] = frame
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
