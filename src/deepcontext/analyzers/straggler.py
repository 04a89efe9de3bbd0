"""Stragglers: ranks that come last to collectives, always, rarely or in turn.

Needs the collectives of each rank (`summaries/late_ranks.py`). Sees what `rank_imbalance` cannot, because
sums over a run are equal where ranks are late in turn. Does not know the line of a late rank; says nothing
of a rank for which `rank_imbalance` names one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deepcontext.analyzers import rank_imbalance
from deepcontext.analyzers.base import Analyzer
from deepcontext.analyzers.finding import Finding, Gain, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.profiler.summaries import ranks as rank_summary
from deepcontext.profiler.summaries.late_ranks import by_lateness

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.summaries.late_ranks import LateRanks, RankDelays

# Share of the elapsed time of a rank that a rank costs the others above an even share.
_LEAST_SHARE: Final = 0.05
# The same of all ranks together, where no single rank stands out.
_LEAST_TOGETHER: Final = 0.10
_LEAST_NS: Final = 100_000_000
# A rank whose longest delay is this share of what it costs is late rarely.
_RARE: Final = 1 / 20
_NONE: Final = "every rank comes to its collectives when the others do"


def _find(profile: Profile) -> list[Finding]:
    found = by_lateness(profile)
    nodes = {rank: int(node) for rank, node in rank_summary.rank_nodes(profile)}
    elapsed_ns = profile.run.wall_ns // (len(nodes) or 1)
    if found is None or found.reason or elapsed_ns < source_locations.LEAST_TOTAL_NS:
        return []
    even_ns = sum(row.caused_ns for row in found.rows) / len(found.rows)
    least = max(_LEAST_NS, _LEAST_SHARE * elapsed_ns)
    late = [row for row in found.rows if row.caused_ns - even_ns >= least]
    known = {finding.evidence["rank"] for finding in rank_imbalance.ANALYZER.find(profile)}
    if late:
        return [_of_rank(row, found, nodes, elapsed_ns) for row in late if row.rank not in known]
    together_ns = sum(row.caused_ns for row in found.rows)
    if known or together_ns < max(_LEAST_NS, _LEAST_TOGETHER * elapsed_ns):
        return []
    return [_in_turn(found, together_ns, nodes, elapsed_ns)]


def _of_rank(row: RankDelays, found: LateRanks, nodes: dict[int, int], elapsed_ns: int) -> Finding:
    is_rare = row.longest_ns >= _RARE * row.caused_ns
    how = "rarely, but then by much" if is_rare else "again and again"
    share = min(1.0, row.caused_ns / elapsed_ns)
    return Finding(
        id="straggler",
        severity=Severity.of_share(share),
        title=f"rank {row.rank} comes last to collectives {how}, and costs the job {share:.0%}",
        nodes=_nodes([row], nodes),
        evidence={
            **_evidence(found),
            "rank": row.rank,
            "caused_ns": row.caused_ns,
            "longest_ns": row.longest_ns,
        },
        gain=_gain(row.caused_ns, found, elapsed_ns),
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


def _in_turn(found: LateRanks, together_ns: int, nodes: dict[int, int], elapsed_ns: int) -> Finding:
    share = min(1.0, together_ns / elapsed_ns)
    return Finding(
        id="straggler",
        severity=Severity.of_share(share),
        title=f"ranks come late to collectives in turn, and cost the job {share:.0%}",
        nodes=_nodes(found.rows, nodes),
        evidence={
            **_evidence(found),
            "caused_ns": together_ns,
            "longest_ns": max(row.longest_ns for row in found.rows),
        },
        gain=_gain(together_ns, found, elapsed_ns),
        advice=(
            "the work of a step is uneven, and another rank has the most each time: batches of equal "
            "length on all ranks (bucket by length), loaders with more workers or a longer queue, "
            "fewer threads than cores; or let ranks run ahead (fewer collectives, gradient "
            "accumulation)"
        ),
        misleads="ranks share too few cores, as where several ranks are tried on one machine",
    )


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
