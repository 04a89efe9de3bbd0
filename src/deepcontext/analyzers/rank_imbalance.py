"""Rank imbalance: lines that take longer on one rank of a job, while the other ranks wait.

Needs a merged profile (`deepcontext merge`). Leaves a rank to `straggler` where that knows its line. Compares
only processes that run the same program and meet in collectives, because the frontend, the engine and the
workers of a server do different work in different lines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.base import Analyzer
from deepcontext.analyzers.finding import Finding, Gain, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.analyzers.shared.late_ranks import lateness, without_setup
from deepcontext.profiler.format.frame import Frame, FrameKind, Phase
from deepcontext.profiler.format.metric import (
    HOST_TIME_NS,
    SAMPLED_CPU_TIME_NS,
    SAMPLED_WAIT_TIME_NS,
)
from deepcontext.profiler.model.metric_values import exclusive_or_zeros
from deepcontext.profiler.model.source import is_user_file
from deepcontext.profiler.model.tree import NO_NODE
from deepcontext.profiler.summaries import collectives
from deepcontext.profiler.summaries import ranks as rank_summary
from deepcontext.profiler.summaries.lines import UserLines

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.summaries.ranks import UnevenLine

    Ranks = Sequence[tuple[int, int]]

_MOST: Final = 5
# Share of a rank's elapsed time; starting and importing differ by less between equal processes.
_LEAST_SHARE: Final = 0.05
_LEAST_NS: Final = 100_000_000
# Code in which a rank waits until the others have started.
_DISTRIBUTED: Final = ("/torch/distributed/",)
_DOING: Final = {
    "computing": HOST_TIME_NS,
    "running Python": SAMPLED_CPU_TIME_NS,
    "waiting": SAMPLED_WAIT_TIME_NS,
}
# Where a JAX program waits for other processes: to begin, or in the collectives of compiled programs.
_WAITS: Final = (
    "jax: join the other processes",
    "jax: wait for the device",
    "jax: copy to host",
)


def _find(profile: Profile) -> list[Finding]:
    ranks = rank_summary.rank_nodes(profile)
    elapsed_ns = profile.run.wall_ns // (len(ranks) or 1)
    if not ranks or elapsed_ns < source_locations.LEAST_TOTAL_NS:
        return []
    least = max(_LEAST_NS, _LEAST_SHARE * without_setup(profile, elapsed_ns))
    found = []
    for peers in _peers(profile, ranks):
        lines = rank_summary.uneven_lines(profile, _MOST, _working_ns(profile), peers)
        found += [
            _finding(profile, peers, line, elapsed_ns) for line in lines if line.excess >= least
        ]
    late = lateness(profile)
    told = frozenset() if late is None else late.with_line
    return [finding for finding in found if finding.evidence["rank"] not in told]


def _peers(profile: Profile, ranks: Ranks) -> list[Ranks]:
    """Return groups of ranks that run one program and meet in collectives, two or more each."""
    tree = profile.tree
    meets = np.flatnonzero(collectives.collective_nodes(profile))
    body = np.flatnonzero(_nodes_of(profile, _is_program))
    groups: dict[str, list[tuple[int, int]]] = {}
    for rank, node in ranks:
        end = int(tree.subtree_end[node])
        if ((meets >= node) & (meets < end)).any():
            of_rank = body[(body >= node) & (body < end)]
            program = profile.frame(int(of_rank[0])).file if len(of_rank) else ""
            groups.setdefault(program, []).append((rank, node))
    return [group for group in groups.values() if len(group) > 1]


def _working_ns(profile: Profile) -> source_locations.Ints:
    """Return the time of each node in which its rank works, shape (nodes,), int64.

    Left out are collectives, jitted functions with collectives, waits at lines with either, waits for a
    device, and imports.
    """
    tree = profile.tree
    values = rank_summary.line_time(profile).copy()
    collective = _nodes_of(profile, _is_exchange) | _with_collectives(profile)
    values[tree.at_or_below(collective)] = 0
    imported = _nodes_of(profile, _is_imported)
    values[tree.at_or_below(imported)] = 0
    owner = tree.nearest(profile.is_user_code()[tree.frame])
    line = profile.frames.source_line()[tree.frame[owner]]
    meets = (owner != NO_NODE) & np.isin(line, line[collective & (owner != NO_NODE)])
    if SAMPLED_WAIT_TIME_NS.name in profile.metrics:
        waited = np.where(meets, profile.exclusive(SAMPLED_WAIT_TIME_NS.name), 0)
        values = np.maximum(values - waited, 0)
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


def _finding(profile: Profile, ranks: Ranks, line: UnevenLine, elapsed_ns: int) -> Finding:
    most = max(line.by_rank)
    location = line.by_rank.index(most)
    rank, node = ranks[location]
    excess = int(line.excess)
    where = source_locations.location_text(
        profile, Frame(FrameKind.PYTHON, line.function, line.file, line.line)
    )
    return Finding(
        id="rank_imbalance",
        severity=Severity.of_share(excess / elapsed_ns),
        title=f"rank {rank} takes longer than the others, {_doing(profile, line, node)} at {where}",
        nodes=_nodes(profile, line, node),
        evidence={
            "rank": rank,
            "ranks": len(ranks),
            "most_ns": most,
            "mean_ns": sum(line.by_rank) // len(ranks),
            "least_ns": min(line.by_rank),
        },
        gain=Gain(
            metric="elapsed time",
            upper_bound=excess * len(ranks),
            upper_bound_share=min(1.0, excess / elapsed_ns),
            assumption="the line takes the mean time on every rank, and all ranks wait for the slowest",
        ),
        advice=(
            "give the ranks equal work: shards of equal size, batches of equal length (bucket by "
            "length); if the work is equal, look at the machine of this rank: disk, cores, other "
            "programs"
        ),
        misleads=(
            "one rank has extra work (logging, validation, checkpoints); nothing waits for the "
            "slowest rank"
        ),
    )


def _doing(profile: Profile, line: UnevenLine, rank_node: int) -> str:
    """Return what a rank mostly does at a line, as `late_places.py` says it."""
    lines, nodes = UserLines.of(profile), np.arange(len(profile.tree))
    within = (nodes >= rank_node) & (nodes < profile.tree.subtree_end[rank_node])
    frames = [profile.frames[int(frame)] for frame in lines.frame]
    at = [(each.name, each.file, each.line) for each in frames].index((
        line.function,
        line.file,
        line.line,
    ))
    if (profile.tree.phase[within & (lines.of_node == at)] == Phase.DATA_LOADING).any():
        return "loading data"
    time = {
        doing: int(lines.sums(exclusive_or_zeros(profile, metric.name), within)[at])
        for doing, metric in _DOING.items()
    }
    return max(time, key=lambda doing: time[doing])


def _nodes(profile: Profile, line: UnevenLine, rank_node: int) -> tuple[int, ...]:
    """Return the nodes of the line in the slow rank, the costliest first."""
    value = profile.tree.inclusive(rank_summary.line_time(profile))
    location = (line.function, line.file, line.line)
    nodes = np.flatnonzero(
        _nodes_of(profile, lambda frame: (frame.name, frame.file, frame.line) == location)
    )
    nodes = nodes[(nodes >= rank_node) & (nodes < profile.tree.subtree_end[rank_node])]
    return tuple(nodes[np.argsort(-value[nodes], kind="stable")].tolist())


ANALYZER = Analyzer("rank_imbalance", "does one rank of a job hold up the others?", _find)
