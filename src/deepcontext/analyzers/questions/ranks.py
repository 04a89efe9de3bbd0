"""Does one rank of a job hold up the others: at which line, always, rarely, or in turn?

Needs a merged profile (`deepcontext merge`), and for who comes last the collectives of each rank
(`summaries/late_ranks.py`), which tell what sums over a run cannot, because these are equal where ranks are
late in turn. Compares only processes that run the same program and meet in collectives, because the frontend,
the engine and the workers of a server do different work in different lines. One cause is reported once: a
late rank whose line is known is not reported by its time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.causes import ELAPSED, Cause
from deepcontext.analyzers.finding import Gain, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.profiler.format.frame import Frame, FrameKind, Phase
from deepcontext.profiler.format.metric import (
    HOST_TIME_NS,
    SAMPLED_CPU_TIME_NS,
    SAMPLED_READY_TIME_NS,
    SAMPLED_WAIT_TIME_NS,
)
from deepcontext.profiler.format.user_code import is_user_file
from deepcontext.profiler.model.tree import NO_NODE
from deepcontext.profiler.summaries import collectives, ranks, time_between_operators
from deepcontext.profiler.summaries.late_places import late_places
from deepcontext.profiler.summaries.late_ranks import by_lateness
from deepcontext.profiler.summaries.lines import UserLines
from deepcontext.profiler.summaries.setup_time import setup_time

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.summaries.late_places import LatePlace
    from deepcontext.profiler.summaries.late_ranks import LateRanks, RankDelays
    from deepcontext.profiler.summaries.ranks import UnevenLine

_MOST: Final = 5
# Share of a rank's elapsed time without set-up, of one rank (starting and importing differ by less between
# equal processes), and of all ranks together, where no one stands out.
_LEAST_SHARE: Final = 0.05
_LEAST_NS: Final = 100_000_000
_LEAST_TOGETHER: Final = 0.10
# Where only some collectives were compared, a rank stands out by so many standard errors.
_ERRORS: Final = 2
# A line is named where it has this share of what the rank did longer than the others, or where most ranks
# have it in common.
_MOST_OF: Final = 0.5
# A rank whose longest delay is this share of what it costs is late rarely.
_RARE: Final = 1 / 20
# Code in which a rank waits until the others have started.
_DISTRIBUTED: Final = ("/torch/distributed/",)
_DOING: Final = {
    "computing": HOST_TIME_NS,
    "running Python": SAMPLED_CPU_TIME_NS,
    "waiting": SAMPLED_WAIT_TIME_NS,
}
# Where a JAX program waits for other processes: to begin, or in the collectives of compiled programs.
_WAITS: Final = ("jax: join the other processes", "jax: wait for the device", "jax: copy to host")


def find(profile: Profile) -> Iterator[Cause]:
    """Return the ranks that hold up others."""
    late = _lateness(profile)
    told = frozenset() if late is None else late.with_line
    uneven = [each for each in _uneven(profile) if each.evidence["rank"] not in told]
    yield from uneven
    known = {each.evidence["rank"] for each in uneven}
    if late is None:
        return
    for row, place in late.late:
        if place is not None or row.rank not in known:
            is_rare = row.longest_ns >= _RARE * row.caused_ns
            key = "rank_comes_last_rarely" if is_rare else "rank_comes_last"
            yield _late_cause(profile, key, late, [row], place)
    together = sum(row.caused_ns for row in late.delays.rows)
    if (
        not late.late
        and not known
        and together - late.without_processor_ns
        >= max(_LEAST_NS, _LEAST_TOGETHER * late.working_ns)
    ):
        place = _common_place(profile, late.delays)
        yield _late_cause(profile, "ranks_late_in_turn", late, late.delays.rows, place)


def _uneven(profile: Profile) -> Iterator[Cause]:
    """Return the lines that take longer on one rank, while the other ranks wait."""
    rows = ranks.by_rank(profile)
    elapsed_ns = profile.run.wall_ns // (len(rows) or 1)
    if not rows or elapsed_ns < source_locations.LEAST_TOTAL_NS:
        return
    least = max(_LEAST_NS, _LEAST_SHARE * _without_setup(profile, elapsed_ns))
    for peers in _peers(profile):
        for line in ranks.uneven_lines(profile, _MOST, _working_ns(profile), peers):
            if line.excess < least:
                continue
            most, excess = max(line.by_rank), int(line.excess)
            slow = peers[line.by_rank.index(most)]
            share = min(1.0, excess / elapsed_ns)
            yield Cause(
                key="rank_takes_longer",
                nodes=_nodes(profile, line, slow),
                frame=Frame(FrameKind.PYTHON, line.function, line.file, line.line),
                metric=ELAPSED,
                value=excess * len(peers),
                severity=Severity.of_share(share),
                words={"rank": rows[slow].rank, "doing": _doing(profile, line, slow)},
                evidence={
                    "rank": rows[slow].rank,
                    "ranks": len(peers),
                    "most_ns": most,
                    "mean_ns": sum(line.by_rank) // len(peers),
                    "least_ns": min(line.by_rank),
                },
                gain=Gain(
                    ELAPSED,
                    excess * len(peers),
                    share,
                    "the line takes the mean time on every rank, and all ranks wait for the slowest",
                ),
            )


def _late_cause(
    profile: Profile,
    key: str,
    late: _Lateness,
    rows: Sequence[RankDelays],
    place: LatePlace | None,
) -> Cause:
    """Return a cause about ranks that come last, with the line that made them late."""
    caused = sum(row.caused_ns for row in rows)
    share, delays = min(1.0, caused / late.elapsed_ns), late.delays
    at = (
        ""
        if place is None
        else (f", {place.doing} at {source_locations.location_text(profile, place.frame)}")
    )
    return Cause(
        key=key,
        nodes=() if place is None else (place.node,),
        metric=ELAPSED,
        value=caused,
        severity=Severity.of_share(share),
        words={"rank": rows[0].rank, "place": at, "share": share},
        evidence={
            **({"rank": rows[0].rank} if len(rows) == 1 else {}),
            **({"line_share": place.share} if place and len(rows) == 1 else {}),
            "ranks": len(delays.rows),
            "collectives": delays.collectives,
            "compared": delays.compared,
            "waiting_ns": sum(row.waiting_ns for row in delays.rows),
            "caused_ns": caused,
            "longest_ns": max(row.longest_ns for row in rows),
        },
        gain=Gain(
            ELAPSED,
            caused * len(delays.rows),  # the profile has the time of all ranks
            share,
            "every rank comes to its collectives when the others do",
        ),
    )


def _common_place(profile: Profile, delays: LateRanks) -> LatePlace | None:
    """Return the line that made most of the ranks late, of the rank that it cost most."""
    first = [late_places(profile, row.rank)[:1] for row in delays.rows]
    places = [found[0] for found in first if found and found[0].frame is not None]
    best = max(places, key=lambda place: place.excess_ns, default=None)
    alike = [place for place in places if best and place.frame == best.frame]
    return best if len(alike) > _MOST_OF * len(delays.rows) else None


def _peers(profile: Profile) -> list[list[int]]:
    """Return groups of ranks that run one program and meet in collectives, as indices, two or more each."""
    node = ranks.largest_nodes(profile)
    known = ranks.is_on_rank(profile)
    meets = known[collectives.collective_nodes(profile)[node]].any(axis=0)
    body = np.flatnonzero(_nodes_of(profile, _is_program)[node])
    body = body[np.argsort(profile.tree.depth[node[body]], kind="stable")]
    groups: dict[str, list[int]] = {}
    for index in np.flatnonzero(meets).tolist():
        of_rank = node[body[known[body, index]]]
        program = profile.frame(int(of_rank[0])).file if len(of_rank) else ""
        groups.setdefault(program, []).append(index)
    return [group for group in groups.values() if len(group) > 1]


def _working_ns(profile: Profile) -> ranks.Table:
    """Return the time at each of the largest paths in which its rank works, shape (rows, ranks).

    Left out are collectives, jitted functions with collectives, waits at lines with either, waits for a
    device, and imports.
    """
    tree, node = profile.tree, ranks.largest_nodes(profile)
    values = ranks.own_values(profile, ranks.line_metric(profile)).copy()
    collective = _nodes_of(profile, _is_exchange) | _with_collectives(profile)
    values[tree.at_or_below(collective | _nodes_of(profile, _is_imported))[node]] = 0
    owner = tree.nearest(profile.is_user_code()[tree.frame])
    line = profile.frames.source_line()[tree.frame[owner]]
    meets = (owner != NO_NODE) & np.isin(line, line[collective & (owner != NO_NODE)])
    waited = ranks.own_values(profile, SAMPLED_WAIT_TIME_NS.name)
    values[meets[node]] = np.maximum(values - waited, 0)[meets[node]]
    return values


def _with_collectives(profile: Profile) -> source_locations.Mask:
    """Return which nodes are collectives, or operators that contain collectives."""
    found = collectives.collective_nodes(profile)
    around = profile.tree.at_or_above(found)
    return found | (around & _nodes_of(profile, _is_jitted))


def _is_jitted(frame: Frame) -> bool:
    return frame.kind is FrameKind.OPERATOR and frame.name.startswith("jit(")


def _is_exchange(frame: Frame) -> bool:
    return frame.name in _WAITS or any(each in frame.file for each in _DISTRIBUTED)


def _is_program(frame: Frame) -> bool:
    """Return whether a frame may be the script's body: the first such frame of a process."""
    return frame.name == "<module>" and is_user_file(frame.file)


def _is_imported(frame: Frame) -> bool:
    return frame.name == "<module>" and bool(frame.file) and not is_user_file(frame.file)


def _nodes_of(profile: Profile, accepts: Callable[[Frame], bool]) -> source_locations.Mask:
    """Return which nodes have an accepted frame, shape (nodes,), bool."""
    return np.array([accepts(frame) for frame in profile.frames], np.bool_)[profile.tree.frame]


def _doing(profile: Profile, line: UnevenLine, rank: int) -> str:
    """Return what the rank of an index mostly does at a line, as `late_places.py` says it."""
    node = ranks.largest_nodes(profile)
    at_line = (UserLines.of(profile).of_node[node] == line.index) & ranks.is_on_rank(profile)[
        :, rank
    ]
    if (profile.tree.phase[node[at_line]] == Phase.DATA_LOADING).any():
        return "loading data"
    time = {
        doing: ranks.own_values(profile, metric.name)[at_line, rank].sum()
        for doing, metric in _DOING.items()
    }
    return max(time, key=lambda doing: time[doing])


def _nodes(profile: Profile, line: UnevenLine, rank: int) -> tuple[int, ...]:
    """Return the nodes of the line on the slow rank, the costliest over all ranks first."""
    value = profile.inclusive(ranks.line_metric(profile))
    location = (line.function, line.file, line.line)
    is_line = _nodes_of(profile, lambda frame: (frame.name, frame.file, frame.line) == location)
    nodes = ranks.largest_nodes(profile)[ranks.is_on_rank(profile)[:, rank]]
    nodes = nodes[is_line[nodes]]
    return tuple(nodes[np.argsort(-value[nodes], kind="stable")].tolist())


@dataclass(frozen=True, slots=True)
class _Lateness:
    """How a job lost time to late ranks.

    Attributes:
        delays: all ranks.
        elapsed_ns: mean elapsed time of a rank.
        working_ns: the same without set-up.
        without_processor_ns: how long the ranks together had no processor.
        late: the ranks that stand out, each with the line that made it late; None where no line has
            most of it.
    """

    delays: LateRanks
    elapsed_ns: int
    working_ns: int
    without_processor_ns: int
    late: tuple[tuple[RankDelays, LatePlace | None], ...]

    @property
    def with_line(self) -> frozenset[int]:
        """Numbers of the ranks that stand out and whose line is known."""
        return frozenset(row.rank for row, place in self.late if place is not None)


def _lateness(profile: Profile) -> _Lateness | None:
    """Return who was late; None where it is not known, or too little was measured to judge."""
    delays = by_lateness(profile)
    elapsed_ns = profile.run.wall_ns // (profile.run.ranks or 1)
    if delays is None or delays.reason or elapsed_ns < source_locations.LEAST_TOTAL_NS:
        return None
    if not ranks.by_rank(profile):  # the set-up of a job: what its ranks did is known of the whole
        return None
    working_ns = _without_setup(profile, elapsed_ns)
    least = max(_LEAST_NS, _LEAST_SHARE * working_ns)
    # Not the mean, which several late ranks raise.
    usual = sorted(delays.rows, key=lambda row: row.caused_ns)[(len(delays.rows) - 1) // 2]
    # Who had no processor was late because of other programs.
    without_ns = _without_processor_ns(profile)
    late = [
        row
        for row in delays.rows
        if row.caused_ns - usual.caused_ns - without_ns[row.rank]
        >= max(least, _ERRORS * (row.error_ns + usual.error_ns))
    ]
    placed = tuple((row, _place(profile, row.rank)) for row in late)
    return _Lateness(delays, elapsed_ns, working_ns, sum(without_ns.values()), placed)


def _without_processor_ns(profile: Profile) -> dict[int, int]:
    """Return how long the main thread of each rank could run and had no processor; 0 if not recorded."""
    main = time_between_operators.on_main_threads(profile)[ranks.largest_nodes(profile)]
    ready = ranks.own_values(profile, SAMPLED_READY_TIME_NS.name)[main].sum(axis=0)
    return {
        row.rank: max(0, round(value))
        for row, value in zip(ranks.by_rank(profile), ready.tolist(), strict=True)
    }


def _without_setup(profile: Profile, elapsed_ns: int) -> int:
    """Return the mean elapsed time of a rank without importing and compiling.

    A longer run has more of this time only, so what is worth telling is judged against it.
    """
    setup = setup_time(profile)
    if setup is None or not setup.elapsed_ns:
        return elapsed_ns
    return round(elapsed_ns * setup.working_ns / setup.elapsed_ns)


def _place(profile: Profile, rank: int) -> LatePlace | None:
    places = late_places(profile, rank)
    return places[0] if places and places[0].frame and places[0].share >= _MOST_OF else None
