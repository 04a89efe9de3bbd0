"""One profile of all ranks of a job: their trees side by side, each below a frame of kind rank.

Does not read or write files. Invariant: every sum over the tree of a rank equals the sum in that
rank's profile; sums over the whole profile are the job's.
"""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from deepcontext.errors import UserError
from deepcontext.profiler.format import child_ends, nccl, node_sections, rank_collectives
from deepcontext.profiler.format.frame import FrameKind, Phase
from deepcontext.profiler.model import compiled_kernels
from deepcontext.profiler.model.frame_table import FrameTable
from deepcontext.profiler.model.merged_windows import merged_windows
from deepcontext.profiler.model.metric_rows import MetricRows
from deepcontext.profiler.model.one_job import check_one_job
from deepcontext.profiler.model.profile import Profile
from deepcontext.profiler.model.run_info import ALL_RANKS
from deepcontext.profiler.model.titles import SECTION_TITLES
from deepcontext.profiler.model.tree import NO_NODE, Tree
from deepcontext.profiler.model.trust import CollectorReport, TrustReport

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy.typing as npt

    from deepcontext.profiler.model.run_info import RunInfo

_FEWEST: Final = 2
# The analyzers write this section, and write it again for the merged profile. Left out without a
# note: made again from the merged profile, or useless without the children.
# Sections of which a merged profile has those of all ranks, by rank.
_JOINED: Final = {
    **dict.fromkeys(rank_collectives.SECTIONS, rank_collectives.joined),
    nccl.SECTION: nccl.joined,
}
_OF_ONE_PROCESS: Final = ("findings", child_ends.SECTION)


@dataclass(frozen=True, slots=True)
class Part:
    """One profile to merge.

    Attributes:
        name: name of the profile in errors.
        profile: the profile.
        rank: its rank.
    """

    name: str
    profile: Profile
    rank: int


def merge(profiles: Mapping[str, Profile], *, unrelated: bool = False) -> Profile:
    """Return one profile of several processes of one job.

    Elapsed and processor time, memory and counters are sums over the ranks; the number of steps is
    the maximum over the ranks.

    Args:
        profiles: profiles by their name in errors. If no profile knows its rank, the ranks are
            numbered in this order.
        unrelated: merge profiles that do not look like processes of one job.

    Raises:
        UserError: there are fewer than two profiles, two have the same rank, some have no rank, they
            belong to different jobs, or their builds define a metric differently.
    """
    parts = _parts(profiles)
    if not unrelated:
        check_one_job({name: profile.run for name, profile in profiles.items()})
    frames, frame_maps = _frames(parts)
    sizes = [len(part.profile.tree) for part in parts]
    offsets = (1 + np.cumsum([0, *sizes[:-1]])).tolist()
    sections, left_out = _sections(parts)
    windows = merged_windows([part.profile for part in parts], offsets, 1 + sum(sizes))
    if windows is not None:
        sections[node_sections.WINDOWS] = windows
    elif any(part.profile.windows for part in parts):
        left_out.append(SECTION_TITLES[node_sections.WINDOWS])
    return Profile(
        frames=frames,
        tree=_tree(parts, frame_maps, offsets),
        metrics=_metrics(parts, offsets),
        run=_run(parts),
        trust=_trust(parts, left_out),
        sections=sections,
    )


def _parts(profiles: Mapping[str, Profile]) -> list[Part]:
    if len(profiles) < _FEWEST:
        raise UserError(
            f"cannot merge {len(profiles)} profile; name the profiles of two or more ranks"
        )
    ranked = {name: profile.run.ranks > 0 for name, profile in profiles.items()}
    if any(ranked.values()) and not all(ranked.values()):
        name = next(name for name, is_ranked in ranked.items() if not is_ranked)
        raise UserError(
            f"'{name}' has no rank, but other profiles have one; name profiles of one job"
        )
    parts: dict[int, Part] = {}
    for number, (name, profile) in enumerate(profiles.items()):
        rank = profile.run.rank if ranked[name] else number
        if rank == ALL_RANKS:
            raise UserError(
                f"'{name}' is a merged profile already; name the profiles of the single ranks"
            )
        if rank in parts:
            raise UserError(
                f"'{parts[rank].name}' and '{name}' both belong to rank {rank}; name one profile for "
                "each rank"
            )
        parts[rank] = Part(name, profile, rank)
    return [parts[rank] for rank in sorted(parts)]


def _frames(parts: Sequence[Part]) -> tuple[FrameTable, list[npt.NDArray[np.uint32]]]:
    """Return the frames of all parts, and for each part the new index of each of its frames.

    The first frame is the root's, the next frames are the ranks'.
    """
    strings: dict[str, int] = {}

    def index_of(text: str) -> int:
        return strings.setdefault(text, len(strings))

    nothing = index_of("")
    rows = [(int(FrameKind.ROOT), nothing, nothing, 0)]
    rows += [
        (int(FrameKind.RANK), index_of(f"rank {part.rank}"), nothing, part.rank) for part in parts
    ]
    known = {row: number for number, row in enumerate(rows)}
    maps = []
    for part in parts:
        table = part.profile.frames
        indices = [index_of(text) for text in table.strings]
        columns = (table.kind, table.name, table.file, table.line)
        numbers = np.empty(len(table), np.uint32)
        for index, (kind, name, file, line) in enumerate(
            zip(*(column.tolist() for column in columns), strict=True)
        ):
            row = (kind, indices[name], indices[file], line)
            numbers[index] = known.setdefault(row, len(known))
        maps.append(numbers)
    kind, name, file, line = zip(*known, strict=True)
    table = FrameTable(
        np.array(kind, np.uint8),
        np.array(name, np.uint32),
        np.array(file, np.uint32),
        np.array(line, np.uint32),
        tuple(strings),
    )
    return table, maps


def _tree(
    parts: Sequence[Part], frame_maps: Sequence[npt.NDArray[np.uint32]], offsets: Sequence[int]
) -> Tree:
    """Return a root with the ranks' trees below it; each rank's frame replaces its tree's root."""
    trees = [part.profile.tree for part in parts]
    nodes = 1 + sum(map(len, trees))
    parent, end = [np.array([NO_NODE])], [np.array([nodes])]
    frame: list[npt.NDArray[np.integer[Any]]] = [np.zeros(1, np.uint32)]
    phase: list[npt.NDArray[np.integer[Any]]] = [np.array([int(Phase.NONE)])]
    for number, (tree, frame_map, offset) in enumerate(
        zip(trees, frame_maps, offsets, strict=True), start=1
    ):
        parent.append(np.where(tree.parent == NO_NODE, 0, tree.parent.astype(np.int64) + offset))
        end.append(tree.subtree_end.astype(np.int64) + offset)
        frames = frame_map[tree.frame]
        frames[0] = number
        frame.append(frames)
        phase.append(tree.phase)
    return Tree.from_preorder(
        parent=np.concatenate(parent).astype(np.int32),
        frame=np.concatenate(frame).astype(np.uint32),
        phase=np.concatenate(phase).astype(np.uint8),
        subtree_end=np.concatenate(end).astype(np.int32),
    )


def _metrics(parts: Sequence[Part], offsets: Sequence[int]) -> dict[str, MetricRows]:
    found: dict[str, list[tuple[str, MetricRows]]] = {}
    for part, offset in zip(parts, offsets, strict=True):
        for name, rows in part.profile.stored_metrics().items():
            moved = dataclasses.replace(rows, node=(rows.node + offset).astype(np.uint32))
            found.setdefault(name, []).append((part.name, moved))
    return {name: _joined(rows) for name, rows in found.items()}


def _joined(found: Sequence[tuple[str, MetricRows]]) -> MetricRows:
    (first_name, first), *others = found
    for name, rows in others:
        here, there = first.descriptor, rows.descriptor
        if (here.unit, here.aggregation) != (there.unit, there.aggregation):
            raise UserError(
                f"metric '{here.name}' is a {here.aggregation.name.lower()} in {here.unit} in "
                f"'{first_name}', a {there.aggregation.name.lower()} in {there.unit} in '{name}'; "
                "profile all ranks with one version of deepcontext"
            )
    every = [rows for _, rows in found]
    return MetricRows(
        first.descriptor,
        node=np.concatenate([rows.node for rows in every]),
        count=np.concatenate([rows.count for rows in every]),
        total=np.concatenate([rows.total for rows in every]),
        minimum=_column(every, lambda rows: rows.minimum),
        maximum=_column(every, lambda rows: rows.maximum),
        m2=_column(every, lambda rows: rows.m2),
    )


def _column(
    every: Sequence[MetricRows], column: Callable[[MetricRows], npt.NDArray[Any] | None]
) -> npt.NDArray[Any] | None:
    """Return a column of all rows, None where a part did not record the column."""
    columns = [values for values in map(column, every) if values is not None]
    return np.concatenate(columns) if len(columns) == len(every) else None


def _run(parts: Sequence[Part]) -> RunInfo:
    runs = [part.profile.run for part in parts]
    first = runs[0]
    hosts = Counter(run.hostname for run in runs)
    reasons = Counter(run.exit_reason for run in runs)
    return dataclasses.replace(
        first,
        hostname=", ".join(hosts),
        start_unix_ns=min(run.start_unix_ns for run in runs),
        wall_ns=sum(run.wall_ns for run in runs),
        cpu_user_ns=sum(run.cpu_user_ns for run in runs),
        cpu_system_ns=sum(run.cpu_system_ns for run in runs),
        peak_rss_bytes=sum(run.peak_rss_bytes for run in runs),
        pid=0,
        exit_reason=", ".join(reasons),
        steps=max(run.steps for run in runs),
        rank=ALL_RANKS,
        ranks=len(runs),
        local_rank=0,
        local_ranks=0,
    )


def _trust(parts: Sequence[Part], left_out: Sequence[str]) -> TrustReport:
    counters: Counter[str] = Counter()
    notes: dict[str, list[Part]] = {}
    costs = []
    for part in parts:
        trust = part.profile.trust
        counters.update(trust.counters)
        for note in trust.notes:
            notes.setdefault(note, []).append(part)
        if trust.hook_cost_ns_per_event is not None:
            costs.append(trust.hook_cost_ns_per_event)
    told = [f"{_ranks(of, parts)}{note}" for note, of in notes.items()]
    wanted = max(part.profile.run.ranks for part in parts)
    if wanted > len(parts):
        told.insert(0, f"{len(parts)} of the job's {wanted} ranks are in this profile")
    if left_out:
        told.append(f"left out, but present in the profiles of the ranks: {', '.join(left_out)}")
    names = dict.fromkeys(c.name for part in parts for c in part.profile.trust.collectors)
    return TrustReport(
        tuple(_collector(name, parts) for name in names),
        dict(counters),
        sum(costs) / len(costs) if costs else None,
        tuple(told),
    )


def _collector(name: str, parts: Sequence[Part]) -> CollectorReport:
    """Return a collector's worst status over all ranks, and the ranks of each reason."""
    reports = [
        (part, report)
        for part in parts
        for report in part.profile.trust.collectors
        if report.name == name
    ]
    # "off" counts as the mildest status, because a collector that is off on one rank is no fault.
    order = ("off", "ran", "degraded", "unavailable")
    status = max((report.status for _, report in reports), key=order.index)
    reasons: dict[str, list[Part]] = {}
    for part, report in reports:
        if report.reason:
            reasons.setdefault(report.reason, []).append(part)
    reason = "; ".join(f"{_ranks(of, parts)}{text}" for text, of in reasons.items())
    common = dict(reports[0][1].details)
    for _, report in reports[1:]:
        common = {key: text for key, text in common.items() if report.details.get(key) == text}
    return CollectorReport(name, status, reason, common)


def _ranks(of: Sequence[Part], parts: Sequence[Part]) -> str:
    """Return ``"rank 1, 3: "``, "" for all ranks."""
    return "" if len(of) == len(parts) else f"rank {', '.join(str(p.rank) for p in of)}: "


def _sections(parts: Sequence[Part]) -> tuple[dict[str, bytes], list[str]]:
    """Return the merged payloads, and the descriptions of payloads that are left out.

    Most payloads cannot be merged: they number nodes or programs of one process, or describe one
    moment.
    """
    names = dict.fromkeys(name for part in parts for name in part.profile.sections)
    kept, left_out = {}, []
    for name in names:
        payloads = [part.profile.sections.get(name) for part in parts]
        if name in _JOINED:
            kept[name] = _JOINED[name]({
                part.rank: payload
                for part, payload in zip(parts, payloads, strict=True)
                if payload is not None
            })
        elif name == compiled_kernels.SECTION:
            kept[name] = _kernels([payload for payload in payloads if payload is not None])
        elif name == node_sections.WINDOWS:
            continue
        elif (
            name != node_sections.EXEMPLARS and payloads[0] is not None and len(set(payloads)) == 1
        ):
            kept[name] = payloads[0]
        elif name not in _OF_ONE_PROCESS:
            left_out.append(SECTION_TITLES.get(name, name))
    return kept, left_out


def _kernels(payloads: Sequence[bytes]) -> bytes:
    contents = [json.loads(payload) for payload in payloads]
    launches: dict[str, list[Any]] = {}
    for content in contents:
        for kernel, found in content["kernels"].items():
            known = launches.setdefault(kernel, [])
            known += [each for each in found if each not in known]
    return json.dumps({**contents[0], "kernels": launches}).encode()
