"""One profile of several processes of a job, whatever their roles: equal call paths are one path.

Unlike in `part.py`, the result does not distinguish the processes, so nothing
compares them as ranks. Invariant: the sum of each metric over the tree equals the sum over the
processes' profiles.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from deepcontext.profiler.model.grouping import Groups
from deepcontext.profiler.model.job.joined_file import Folders
from deepcontext.profiler.model.job.part import Paths, grouped_paths, joined_by_key
from deepcontext.profiler.model.job.path_keys import (
    NO_PATH,
    frame_keys,
    frame_table,
    joined_frames,
    path_keys,
)
from deepcontext.profiler.model.job.sums import moved, sum_rows
from deepcontext.profiler.model.job.trust_sums import TrustSums, join_trust
from deepcontext.profiler.model.profile import Profile
from deepcontext.profiler.model.tree import Tree

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from deepcontext.profiler.model.metric_rows import MetricRows
    from deepcontext.profiler.model.run_info import RunInfo


def united(profiles: Sequence[Profile]) -> Profile:
    """Return one profile of several processes.

    Elapsed and processor time, memory and counters are sums over the processes. Sections are left out,
    because they describe one process. Siblings are in the order of the first process that has them.

    Args:
        profiles: one for each process, at least one.

    Raises:
        ProfileDataError: two call paths have one key.
        UserError: a metric has another unit or aggregation in one of the profiles.
    """
    tables = [joined_frames(each.frames, Folders.of(each.run)) for each in profiles]
    keys = [frame_keys(table) for table in tables]
    frames = joined_by_key(
        item
        for table, of_frame in zip(tables, keys, strict=True)
        for item in zip(of_frame.tolist(), table, strict=True)
    )
    rows = [_paths(each, of_frame) for each, of_frame in zip(profiles, keys, strict=True)]
    groups = Groups.of(np.concatenate([each.key for each in rows]))
    paths = grouped_paths(groups, _joined(rows))
    frame = np.array(sorted(frames), np.uint64)
    depth = groups.first(np.concatenate([each.tree.depth for each in profiles]))
    created = np.lexsort((groups.order[groups.start], depth))
    rank = np.empty(len(created), np.intp)
    rank[created] = np.arange(len(created))
    above = np.searchsorted(paths.key, paths.parent[created[1:]])
    tree, order = Tree.from_parents(
        np.concatenate([np.zeros(1, np.intp), rank[above]]),
        np.searchsorted(frame, paths.frame[created]),
        paths.phase[created],
    )
    node = np.empty(len(order), np.intp)
    node[created[order]] = np.arange(len(order))
    ends = np.cumsum([len(each) for each in rows])[:-1]
    return Profile(
        frames=frame_table([frames[key] for key in frame.tolist()]),
        tree=tree,
        metrics=_metrics(profiles, np.split(node[groups.of_row()], ends)),
        run=_run([each.run for each in profiles]),
        trust=join_trust([TrustSums.of(each.trust, each.run.pid) for each in profiles]).report(
            len(profiles), (), of="process"
        ),
    )


def _paths(profile: Profile, frames: npt.NDArray[np.uint64]) -> Paths:
    tree = profile.tree
    keys = path_keys(tree, frames)
    parent = keys[tree.parent]
    parent[0] = NO_PATH
    return Paths(keys, parent, frames[tree.frame], tree.phase, np.ones(len(keys), np.uint32))


def _joined(rows: Sequence[Paths]) -> Paths:
    return Paths(
        np.concatenate([each.key for each in rows]),
        np.concatenate([each.parent for each in rows]),
        np.concatenate([each.frame for each in rows]),
        np.concatenate([each.phase for each in rows]),
        np.concatenate([each.seen for each in rows]),
    )


def _metrics(
    profiles: Sequence[Profile], nodes: Sequence[npt.NDArray[np.intp]]
) -> dict[str, MetricRows]:
    found: dict[str, list[MetricRows]] = {}
    for profile, node in zip(profiles, nodes, strict=True):
        for name, rows in profile.stored_metrics().items():
            found.setdefault(name, []).append(moved(rows, node))
    return {name: sum_rows(rows) for name, rows in found.items()}


def _run(runs: Sequence[RunInfo]) -> RunInfo:
    return dataclasses.replace(
        runs[0],
        hostname=", ".join(dict.fromkeys(run.hostname for run in runs)),
        start_unix_ns=min(run.start_unix_ns for run in runs),
        wall_ns=sum(run.wall_ns for run in runs),
        cpu_user_ns=sum(run.cpu_user_ns for run in runs),
        cpu_system_ns=sum(run.cpu_system_ns for run in runs),
        peak_rss_bytes=sum(run.peak_rss_bytes for run in runs),
        pid=0,
        parent_pid=0,
        process_name="",
        exit_reason=", ".join(dict.fromkeys(run.exit_reason for run in runs)),
        steps=max(run.steps for run in runs),
        rank=0,
        ranks=0,
    )
