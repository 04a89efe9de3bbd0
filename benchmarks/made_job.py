"""Make the profiles of a job's ranks: alike trees with noise, four groups, two planted outliers.

python benchmarks/made_job.py RANKS FOLDER
"""

from __future__ import annotations

import dataclasses
import functools
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.format.metric import (
    GPU_TIME_NS,
    HOST_TIME_NS,
    SAMPLED_CPU_TIME_NS,
    SAMPLED_WAIT_TIME_NS,
    Aggregation,
    MetricDescriptor,
)
from deepcontext.profiler.model.frame_table import FrameTable
from deepcontext.profiler.model.metric_rows import MetricRows
from deepcontext.profiler.model.profile import Profile
from deepcontext.profiler.model.tree import Tree

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.synthetic import random_profile

NODES = 20_000
GROUPS = 4  # as stages of a pipeline: each has call paths of its own
OWN_PATHS = 40  # of one rank alone
SLOW = {13: 1.6, 50: 1.3}  # rank -> factor on one subtree
_MISSING = 250  # small subtrees that a rank lacks
ALLOC = MetricDescriptor("alloc_bytes", "bytes", Aggregation.SUM, "bytes allocated")
METRICS = (
    (HOST_TIME_NS, 0.45),
    (SAMPLED_CPU_TIME_NS, 0.15),
    (SAMPLED_WAIT_TIME_NS, 0.05),
    (GPU_TIME_NS, 0.30),
    (ALLOC, 0.08),
)


@dataclasses.dataclass(frozen=True)
class Job:
    """What the ranks of a job have in common."""

    profile: Profile
    rows: dict[str, tuple[Any, ...]]
    own: list[int]
    small: Any
    slow: int


@functools.cache
def job(nodes: int) -> Job:
    profile = random_profile(nodes, seed=1, depth=45)
    random, count = np.random.default_rng(2), len(profile.tree)
    rows = {}
    for descriptor, density in METRICS:
        node = np.sort(random.choice(np.arange(4, count), int(count * density), replace=False))
        value = random.pareto(1.1, len(node)) * 1e6 + 1e4
        rows[descriptor.name] = (descriptor, node, random.integers(1, 500, len(node)), value)
    size = profile.tree.subtree_end - np.arange(count)
    candidates = np.flatnonzero((size > 50) & (size < 400))
    random.shuffle(candidates)
    taken, own = np.zeros(count, bool), []
    for node in candidates.tolist():
        end = profile.tree.subtree_end[node]
        if not taken[node:end].any():
            taken[node:end] = True
            own.append(node)
        if len(own) == 3 * GROUPS:
            break
    small = np.flatnonzero((size < 12) & ~taken)
    is_slow = (size > min(300, nodes // 10)) & (size < 1200) & (profile.tree.depth > 4)
    return Job(profile, rows, own, small, int(np.flatnonzero(is_slow)[0]))


def rank_profile(rank: int, ranks: int, nodes: int = NODES) -> Profile:
    made = job(nodes)
    profile, tree = made.profile, made.profile.tree
    random, keep = np.random.default_rng(1000 + rank), np.ones(len(tree), bool)
    for number, node in enumerate(made.own):
        if number % GROUPS != rank * GROUPS // ranks:
            keep[node : tree.subtree_end[node]] = False
    missing = min(_MISSING, len(made.small) // 2)
    for node in random.choice(made.small, missing, replace=False).tolist():
        keep[node : tree.subtree_end[node]] = False
    keep[0] = True
    new, old = np.cumsum(keep) - 1, np.flatnonzero(keep)
    order_of_frames = random.permutation(len(profile.frames))
    frames = _frames(profile.frames, order_of_frames, rank)
    parent = np.where(tree.parent[old] < 0, 0, new[tree.parent[old]])
    ranks_tree, order = Tree.from_parents(
        np.concatenate([parent, random.integers(1, len(old), OWN_PATHS)]),
        np.concatenate([
            np.argsort(order_of_frames)[tree.frame[old]],
            len(profile.frames) + np.arange(OWN_PATHS),
        ]),
        np.concatenate([tree.phase[old], np.zeros(OWN_PATHS)]).astype(np.uint8),
    )
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    factor, metrics = random.lognormal(0, 0.02), {}
    for name, (descriptor, node, count, value) in made.rows.items():
        values = value * factor * random.lognormal(0, 0.05, len(node))
        is_slow = (node >= made.slow) & (node < tree.subtree_end[made.slow])
        values = np.where(is_slow, values * SLOW.get(rank, 1.0), values)
        has = keep[node]
        at = place[new[node[has]]]
        by_node = np.argsort(at)
        metrics[name] = MetricRows(
            descriptor,
            at[by_node].astype(np.uint32),
            count[has][by_node].astype(np.uint64),
            values[has][by_node].astype(np.int64),
        )
    run = dataclasses.replace(
        profile.run, rank=rank, ranks=ranks, hostname=f"node{rank // 8:04}", pid=1000 + rank
    )
    return Profile(frames=frames, tree=ranks_tree, metrics=metrics, run=run, trust=profile.trust)


def _frames(table: FrameTable, order: Any, rank: int) -> FrameTable:
    """Return the frames in another order, and frames of this rank alone."""
    strings = [*table.strings, *(f"only_rank{rank}_{number}" for number in range(OWN_PATHS))]
    nothing = np.zeros(OWN_PATHS)
    own_names = len(table.strings) + np.arange(OWN_PATHS)
    kinds = np.full(OWN_PATHS, FrameKind.PYTHON)
    return FrameTable(
        np.concatenate([table.kind[order], kinds]).astype(np.uint8),
        np.concatenate([table.name[order], own_names]).astype(np.uint32),
        np.concatenate([table.file[order], nothing]).astype(np.uint32),
        np.concatenate([table.line[order], nothing]).astype(np.uint32),
        tuple(strings),
    )


def _write(task: tuple[int, int, Path]) -> None:
    rank, ranks, folder = task
    path = folder / f"rank{rank:05}.dcprof"
    if not path.exists():
        rank_profile(rank, ranks).save(path)


def write_job(ranks: int, folder: Path) -> None:
    """Write the profiles of a job; profiles that exist are kept."""
    folder.mkdir(parents=True, exist_ok=True)
    tasks = [(rank, ranks, folder) for rank in range(ranks)]
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        list(pool.map(_write, tasks, chunksize=16))


if __name__ == "__main__":
    write_job(int(sys.argv[1]), Path(sys.argv[2]))
