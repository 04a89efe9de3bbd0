"""A profile on a time axis: kept steps as tracks of nested spans, history and windows as counters.

What the formats of trace viewers have in common. Does not know a format. Invariant: the spans of a track
are nested, and come by their begin, the outer one first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from deepcontext.errors import QueryError
from deepcontext.profiler.format.frame import FrameKind, Phase
from deepcontext.profiler.format.metric import GPU_TIME_NS, HOST_TIME_NS
from deepcontext.profiler.model.run_info import ALL_RANKS
from deepcontext.profiler.model.tree import NO_NODE
from deepcontext.profiler.summaries.lines import nearest_user
from deepcontext.profiler.summaries.step_history import step_history
from deepcontext.ui.format import shorten_path
from deepcontext.ui.labels import metric_label
from deepcontext.ui.step_texts import lane_name, why_kept

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from deepcontext.profiler.model.exemplars import Exemplar, Lane
    from deepcontext.profiler.model.profile import Profile

_NS_IN_MS: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Event:
    """What ran from one moment to another; times in ns since the session's start."""

    begin_ns: int
    end_ns: int
    name: str
    category: str
    details: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Track:
    """Nested events of one thread or one stream."""

    name: str
    events: list[Event]


@dataclass(frozen=True, slots=True)
class Counter:
    """A value over time: from each moment, in ns since the session's start, to the next."""

    name: str
    unit: str
    points: list[tuple[int, float]]


@dataclass(frozen=True, slots=True)
class TimeLine:
    """Tracks and counters of one profile; the first track has the steps."""

    title: str
    tracks: list[Track]
    counters: list[Counter]


def time_line(profile: Profile) -> TimeLine:
    """Return the time line of a profile.

    Raises:
        QueryError: the profile has no kept step.
    """
    exemplars = profile.exemplars
    if not exemplars or profile.run.rank == ALL_RANKS:
        raise QueryError(
            "no step was kept in this profile: it is older, merged, without steps, or was recorded with "
            "--no-timeline; formats pprof and speedscope hold call paths without times"
        )
    run = profile.run
    return TimeLine(
        run.script or " ".join(run.command) or "a program",
        [_steps(exemplars), *_tracks(profile)],
        [*_history(profile), *_windows(profile)],
    )


def _steps(exemplars: Iterable[Exemplar]) -> Track:
    events = [
        Event(each.begin_ns, each.end_ns, f"step {each.number}", "step", {"kept": why_kept(each)})
        for each in exemplars
    ]
    return Track("kept steps", events)


def _tracks(profile: Profile) -> list[Track]:
    nodes = _Nodes(profile)
    tracks: dict[tuple[int, int, int], list[Track]] = {}
    before: int | None = None
    for exemplar in profile.exemplars:
        for lane in profile.lanes(exemplar):
            key = (-1 if lane.device is None else lane.device, lane.stream, lane.recorder)
            own = tracks.setdefault(key, [])
            for node, begin_ns, duration_ns in zip(
                lane.node.tolist(), lane.begin_ns.tolist(), lane.duration_ns.tolist(), strict=True
            ):
                # What began in the step before is there, if that step is.
                if begin_ns >= 0 or before != exemplar.number - 1:
                    begin = exemplar.begin_ns + begin_ns
                    _add(own, lane, nodes.event(node, begin, begin + duration_ns))
        before = exemplar.number
    ordered = sorted(tracks.items(), key=lambda item: (item[0][0] >= 0, item[0]))
    return [track for _, own in ordered for track in own]


def _add(tracks: list[Track], lane: Lane, event: Event) -> None:
    """Add an event to the first track in which events remain nested; make one if there is none."""
    for track in tracks:
        outer = _last_open(track, event.begin_ns)
        if outer is None or event.end_ns <= outer.end_ns:
            track.events.append(event)
            return
    number = f" ({len(tracks) + 1})" if tracks else ""
    tracks.append(Track(lane_name(lane) + number, [event]))


def _last_open(track: Track, moment_ns: int) -> Event | None:
    """Return the innermost event that is open at a moment after all begins."""
    return next((each for each in reversed(track.events) if each.end_ns > moment_ns), None)


class _Nodes:
    """What is said of each node, made once a node."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._user = nearest_user(profile)
        self._known: dict[int, tuple[str, str, dict[str, str]]] = {}

    def event(self, node: int, begin_ns: int, end_ns: int) -> Event:
        if node not in self._known:
            self._known[node] = self._described(node)
        return Event(begin_ns, end_ns, *self._known[node])

    def _described(self, node: int) -> tuple[str, str, dict[str, str]]:
        profile = self._profile
        frame = profile.frame(node)
        details = {}
        if self._user[node] != NO_NODE:
            line = profile.frame(int(self._user[node]))
            file = shorten_path(line.file, profile.run.cwd)
            details["line"] = f"{file}:{line.line} in {line.name}"
        modules = [each.name for each in profile.path(node) if each.kind is FrameKind.MODULE]
        if modules:
            details["modules"] = " > ".join(modules)
        phase = Phase(int(profile.tree.phase[node]))
        if phase != Phase.NONE:
            details["phase"] = phase.label
        return frame.name, frame.kind.name.lower(), details


def _history(profile: Profile) -> list[Counter]:
    history = step_history(profile)
    if history is None or not history.parts:
        return []
    windows = profile.windows
    moment = windows[0].end_ns if windows else 0  # about the end of the first step
    points: dict[str, list[tuple[int, float]]] = {"shortest": [], "mean": [], "longest": []}
    for part in history.parts:
        points["shortest"].append((moment, part.minimum_ns / _NS_IN_MS))
        points["mean"].append((moment, part.mean_ns / _NS_IN_MS))
        points["longest"].append((moment, part.maximum_ns / _NS_IN_MS))
        moment += round(part.count * part.mean_ns)
    return [Counter(f"step time, {name}", "ms", own) for name, own in points.items()]


def _windows(profile: Profile) -> list[Counter]:
    windows = [each for each in profile.windows if each.steps]
    parts = [profile.within([window]) for window in windows]
    counters = []
    for metric in (HOST_TIME_NS.name, GPU_TIME_NS.name):
        if metric in profile.metrics:
            points = [
                (window.begin_ns, part.query().total(metric) / window.steps / _NS_IN_MS)
                for window, part in zip(windows, parts, strict=True)
            ]
            counters.append(Counter(f"{metric_label(metric)} a step, by window", "ms", points))
    busy = [
        (each.begin_ns, (each.cpu_user_ns + each.cpu_system_ns) / each.wall_ns)
        for each in windows
        if each.wall_ns > 0
    ]
    return [*counters, Counter("busy processors, by window", "", busy)] if busy else counters
