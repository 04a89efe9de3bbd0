"""Stragglers: ranks that come last to collectives, always, rarely or in turn, and the line that made them.

Needs the collectives of each rank (`summaries/late_ranks.py`). Sees what `rank_imbalance` cannot, because
sums over a run are equal where ranks are late in turn. Says nothing of a rank whose line it does not know
and `rank_imbalance` does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deepcontext.analyzers import rank_imbalance
from deepcontext.analyzers.base import Analyzer
from deepcontext.analyzers.finding import Finding, Gain, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.analyzers.shared.late_ranks import LEAST_NS, lateness
from deepcontext.profiler.summaries import ranks as rank_summary
from deepcontext.profiler.summaries.late_places import late_places

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepcontext.analyzers.shared.late_ranks import Lateness
    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.summaries.late_places import LatePlace
    from deepcontext.profiler.summaries.late_ranks import LateRanks, RankDelays

# Share of a rank's elapsed time without set-up that all ranks together cost, where no one stands out.
_LEAST_TOGETHER: Final = 0.10
# A rank whose longest delay is this share of what it costs is late rarely.
_RARE: Final = 1 / 20
# A line that most of the ranks that are late in turn have in common.
_MOST_OF: Final = 0.5
_NONE: Final = "every rank comes to its collectives when the others do"


def _find(profile: Profile) -> list[Finding]:
    found = lateness(profile)
    if found is None:
        return []
    nodes = {rank: int(node) for rank, node in rank_summary.rank_nodes(profile)}
    known = {finding.evidence["rank"] for finding in rank_imbalance.ANALYZER.find(profile)}
    if found.late:
        return [
            _of_rank(profile, row, place, found, nodes)
            for row, place in found.late
            if place is not None or row.rank not in known
        ]
    together_ns = sum(row.caused_ns for row in found.delays.rows)
    if known or together_ns < max(LEAST_NS, _LEAST_TOGETHER * found.working_ns):
        return []
    return [_in_turn(profile, found, together_ns, nodes)]


def _of_rank(
    profile: Profile,
    row: RankDelays,
    place: LatePlace | None,
    found: Lateness,
    nodes: dict[int, int],
) -> Finding:
    is_rare = row.longest_ns >= _RARE * row.caused_ns
    how = "rarely, but then by much" if is_rare else "again and again"
    share = min(1.0, row.caused_ns / found.elapsed_ns)
    at = "" if place is None else f", {_where(profile, place)}"
    return Finding(
        id="straggler",
        severity=Severity.of_share(share),
        title=f"rank {row.rank} comes last to collectives {how}{at}, and costs the job {share:.0%}",
        nodes=(*(() if place is None else (place.node,)), *_nodes([row], nodes)),
        evidence={
            **_evidence(found.delays),
            "rank": row.rank,
            "caused_ns": row.caused_ns,
            "longest_ns": row.longest_ns,
            **({} if place is None else {"line_share": place.share}),
        },
        gain=_gain(row.caused_ns, found.delays, found.elapsed_ns),
        advice=(
            "look at what this rank does now and then between its collectives (checkpoints, logging, "
            "evaluation, garbage collection, reading a new shard): spread it, or do it on another "
            "thread"
            if is_rare
            else "compare this rank with another one ('deepcontext diff' of their profiles): unequal "
            "batches or shards, a slower disk, fewer cores, other programs on its machine"
        ),
        misleads="the rank has work that the job needs and that no other rank can do meanwhile",
    )


def _in_turn(profile: Profile, found: Lateness, together_ns: int, nodes: dict[int, int]) -> Finding:
    share = min(1.0, together_ns / found.elapsed_ns)
    place = _common_place(profile, found.delays)
    at = "" if place is None else f", {_where(profile, place)}"
    return Finding(
        id="straggler",
        severity=Severity.of_share(share),
        title=f"ranks come late to collectives in turn{at}, and cost the job {share:.0%}",
        nodes=(
            *(() if place is None else (place.node,)),
            *_nodes(found.delays.rows, nodes),
        ),
        evidence={
            **_evidence(found.delays),
            "caused_ns": together_ns,
            "longest_ns": max(row.longest_ns for row in found.delays.rows),
        },
        gain=_gain(together_ns, found.delays, found.elapsed_ns),
        advice=(
            "the work of a step is uneven, and another rank has the most each time: batches of equal "
            "length on all ranks (bucket by length), loaders with more workers or a longer queue, "
            "fewer threads than cores; or let ranks run ahead (fewer collectives, gradient "
            "accumulation)"
        ),
        misleads="ranks share too few cores, as where several ranks are tried on one machine",
    )


def _common_place(profile: Profile, delays: LateRanks) -> LatePlace | None:
    """Return the line that made most of the ranks late, of the rank that it cost most."""
    first = [late_places(profile, row.rank)[:1] for row in delays.rows]
    places = [found[0] for found in first if found and found[0].frame is not None]
    best = max(places, key=lambda place: place.excess_ns, default=None)
    alike = [place for place in places if best and place.frame == best.frame]
    return best if len(alike) > _MOST_OF * len(delays.rows) else None


def _where(profile: Profile, place: LatePlace) -> str:
    return f"{place.doing} at {source_locations.location_text(profile, place.frame)}"


def _evidence(found: LateRanks) -> dict[str, int]:
    return {
        "ranks": len(found.rows),
        "collectives": found.collectives,
        "compared": found.compared,
        "waiting_ns": sum(row.waiting_ns for row in found.rows),
    }


def _gain(caused_ns: int, found: LateRanks, elapsed_ns: int) -> Gain:
    return Gain(
        metric="elapsed time",
        upper_bound=caused_ns * len(found.rows),  # the profile has the time of all ranks
        upper_bound_share=min(1.0, caused_ns / elapsed_ns),
        assumption=_NONE,
    )


def _nodes(rows: Sequence[RankDelays], nodes: dict[int, int]) -> tuple[int, ...]:
    ordered = sorted(rows, key=lambda row: -row.caused_ns)
    return tuple(nodes[row.rank] for row in ordered if row.rank in nodes)[:8]


ANALYZER = Analyzer("straggler", "which ranks come last to collectives, and how often?", _find)
