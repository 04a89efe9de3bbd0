"""A partial result as an ordinary profile, and back, exactly.

The tree is the union of the ranks' trees and each metric's rows are sums over the ranks, so that any
build can show them; what only a join needs is in sections (`sections.py`).
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from deepcontext.profiler.format import node_sections, source_text
from deepcontext.profiler.model import compiled_kernels
from deepcontext.profiler.model.job import sections, steady
from deepcontext.profiler.model.job.bounds import bounded, largest_paths, most_columns
from deepcontext.profiler.model.job.packing import damage, pack
from deepcontext.profiler.model.job.part import Part, Paths
from deepcontext.profiler.model.job.path_keys import NO_PATH, JoinedFrame, frame_table
from deepcontext.profiler.model.job.rank_steps import section, steps_of
from deepcontext.profiler.model.job.sums import moved
from deepcontext.profiler.model.profile import Profile
from deepcontext.profiler.model.run_info import ALL_RANKS
from deepcontext.profiler.model.titles import SECTION_TITLES
from deepcontext.profiler.model.tree import Tree

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from deepcontext.profiler.model.frame_table import FrameTable
    from deepcontext.profiler.model.job.rank_row import RankRow
    from deepcontext.profiler.model.metric_rows import MetricRows
    from deepcontext.profiler.model.profile_model import ProfileModel
    from deepcontext.profiler.model.run_info import RunInfo

_MOST_NAMED: Final = 3


def profile_of(part: Part, *, notes: Sequence[str] = ()) -> Profile:
    """Return the profile that holds a partial result.

    Args:
        part: the partial result.
        notes: warnings about the job, for the trust report.
    """
    keys = np.array(sorted(part.frames), np.uint64)
    tree, order = _tree(part.paths, keys)
    node = np.empty(len(order), np.intp)
    node[order] = np.arange(len(order))
    frames = [part.frames[key] for key in keys.tolist()]
    sums = {name: _ascending(moved(rows, node)) for name, rows in sorted(part.sums.items())}
    windows = steady.window_section(part.rows, sums, len(tree))
    steps = section(part.steps, part.paths.key[order])
    left_out = sorted(
        SECTION_TITLES.get(name, name) for name, payload in part.sections.items() if payload is None
    )
    return Profile(
        frames=frame_table(frames),
        tree=tree,
        metrics={name: rows for name, rows in sums.items() if not steady.is_of_part(name)},
        run=_run(part.run, part.rows),
        trust=part.trust.report(len(part.rows), [*notes, *_about(part.rows, left_out)]),
        sections={
            **_held(part, frames),
            **({} if part.kernels is None else {compiled_kernels.SECTION: part.kernels[1]}),
            **({} if windows is None else {node_sections.WINDOWS: windows}),
            **({} if steps is None else {node_sections.EXEMPLARS: steps}),
            sections.PATHS: pack(
                {
                    "ranks": len(part.rows),
                    "kernels_rank": None if part.kernels is None else part.kernels[0],
                    "differing": [name for name, held in part.sections.items() if held is None],
                    "files": [frame.file for frame in frames],
                },
                {"key": part.paths.key[order], "seen": part.paths.seen[order], "frame": keys},
            ),
            sections.SPREAD: sections.pack_spreads({
                name: spread.at(node) for name, spread in sorted(part.spreads.items())
            }),
            sections.RANKS: sections.pack_ranks(part.rows, part.trust),
            sections.COLUMNS: sections.pack_columns(
                part.columns,
                node[np.searchsorted(part.paths.key, part.columns.key)].astype(np.uint32),
            ),
        },
    )


def _held(part: Part, frames: Sequence[JoinedFrame]) -> dict[str, bytes]:
    held = {name: payload for name, payload in part.sections.items() if payload is not None}
    if text := held.get(source_text.SECTION):
        # A file that ranks have in different folders has one name now.
        held[source_text.SECTION] = source_text.of_files(text, {frame.path for frame in frames})
    return held


def finished(part: Part) -> Part:
    """Return a job's result as it is written: bounded, with values at `most_columns` paths."""
    part = bounded(part)
    most = most_columns(len(part.rows))
    return dataclasses.replace(part, columns=part.columns.only(largest_paths(part, most)))


def read_part(profile: Profile) -> Part:
    """Return the partial result that a profile holds.

    Raises:
        ProfileDataError: a section is missing, damaged, or does not fit the tree.
    """
    packed = sections.content(profile, sections.PATHS)
    key, seen, frame = (packed.columns.get(name) for name in ("key", "seen", "frame"))
    files, tree = packed.facts.get("files"), profile.tree
    if key is None or seen is None or frame is None or not isinstance(files, list):
        raise damage(sections.PATHS, "a column or 'files' is missing")
    if not len(key) == len(seen) == len(tree) or not len(frame) == len(files) == len(
        profile.frames
    ):
        raise damage(sections.PATHS, "it does not fit the tree")
    order = np.argsort(key, kind="stable")
    position = np.empty(len(order), np.intp)
    position[order] = np.arange(len(order))
    parent = key[tree.parent]
    parent[0] = NO_PATH
    rows, trust = sections.ranks_of(profile)
    if not rows:
        raise damage(sections.RANKS, "it has no ranks")
    at_nodes = sections.columns_of(profile)
    by_key = np.argsort(key[at_nodes.node], kind="stable")
    return Part(
        paths=Paths(
            key[order], parent[order], frame[tree.frame][order], tree.phase[order], seen[order]
        ),
        frames=_joined_frames(profile.frames, frame.tolist(), files),
        sums={
            name: _ascending(moved(rows, position))
            for name, rows in (
                *profile.stored_metrics().items(),
                *steady.sums_of(profile).items(),
            )
        },
        spreads={
            name: spread.at(position) for name, spread in sections.spreads_of(profile).items()
        },
        columns=dataclasses.replace(
            at_nodes.columns,
            key=key[at_nodes.node][by_key],
            codes={name: codes[by_key] for name, codes in at_nodes.columns.codes.items()},
        ),
        rows=rows,
        run=profile.run,
        trust=trust,
        sections=_sections(profile, packed.facts.get("differing", [])),
        kernels=_kernels(profile, packed.facts.get("kernels_rank")),
        steps=steps_of(profile, None, key),
    )


def _tree(paths: Paths, frames: npt.NDArray[np.uint64]) -> tuple[Tree, npt.NDArray[np.intp]]:
    """Return the tree, siblings by ascending key, and the position of each node's path."""
    above = np.searchsorted(paths.key, paths.parent)
    root = int(np.flatnonzero(paths.parent == NO_PATH)[0])
    above[root] = root
    depth = (above != np.arange(len(above))).astype(np.intp)
    jump = above
    while (jump != root).any():
        depth += depth[jump]
        jump = jump[jump]
    created = np.lexsort((paths.key, depth))
    rank = np.empty(len(created), np.intp)
    rank[created] = np.arange(len(created))
    tree, order = Tree.from_parents(
        rank[above[created]],
        np.searchsorted(frames, paths.frame[created]),
        paths.phase[created],
    )
    return tree, created[order]


def _joined_frames(
    table: FrameTable, keys: Sequence[int], files: Sequence[Any]
) -> dict[int, JoinedFrame]:
    return {
        key: JoinedFrame(int(frame.kind), frame.name, str(file), frame.line, frame.file)
        for key, file, frame in zip(keys, files, table, strict=True)
    }


def _ascending(rows: MetricRows) -> MetricRows:
    order = np.argsort(rows.node, kind="stable")

    def column(values: npt.NDArray[Any] | None) -> Any:
        return None if values is None else values[order]

    return dataclasses.replace(
        rows,
        node=rows.node[order],
        count=rows.count[order],
        total=rows.total[order],
        minimum=column(rows.minimum),
        maximum=column(rows.maximum),
        m2=column(rows.m2),
    )


def _run(first: RunInfo, rows: Sequence[RankRow]) -> RunInfo:
    """Return the run of the job: sums over the ranks, the program of the lowest rank."""
    started = [row.start_unix_ns for row in rows if row.start_unix_ns]
    return dataclasses.replace(
        first,
        hostname=_most_frequent([row.hostname for row in rows if row.hostname], "hosts"),
        start_unix_ns=min(started, default=0),
        wall_ns=sum(row.wall_ns for row in rows),
        cpu_user_ns=sum(row.cpu_user_ns for row in rows),
        cpu_system_ns=sum(row.cpu_system_ns for row in rows),
        peak_rss_bytes=sum(row.peak_rss_bytes for row in rows),
        pid=0,
        parent_pid=0,
        process_name="",
        exit_reason=_most_frequent([row.exit_reason for row in rows if row.exit_reason], "ends"),
        steps=max(row.steps for row in rows),
        rank=ALL_RANKS,
        ranks=len(rows),
    )


def _most_frequent(texts: Sequence[str], what: str) -> str:
    """Return the texts, the most frequent first; of more than three, how many there are."""
    counted = sorted(Counter(texts).items(), key=lambda item: (-item[1], item[0]))
    names = ", ".join(text for text, _ in counted[:_MOST_NAMED])
    more = len(counted) - _MOST_NAMED
    return f"{names} and {more} other {what}" if more > 0 else names


def _about(rows: Sequence[RankRow], left_out: Sequence[str]) -> list[str]:
    notes = []
    wanted = max(row.of for row in rows)
    if wanted > len(rows):
        notes.append(f"{len(rows)} of the job's {wanted} ranks are in this profile")
    if left_out:
        notes.append(f"left out, but present in the profiles of the ranks: {', '.join(left_out)}")
    return notes


def _sections(profile: ProfileModel, differing: Any) -> dict[str, bytes | None]:
    own = {*sections.ALL, compiled_kernels.SECTION, *node_sections.NODE_SECTIONS, "findings"}
    held: dict[str, bytes | None] = {
        name: payload for name, payload in profile.sections.items() if name not in own
    }
    return {**held, **dict.fromkeys(map(str, differing))}


def _kernels(profile: ProfileModel, rank: Any) -> tuple[int, bytes] | None:
    payload = profile.sections.get(compiled_kernels.SECTION)
    return None if payload is None or not isinstance(rank, int) else (rank, payload)
