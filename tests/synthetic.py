"""Profiles made up from a seed, of any size: for tests of readers, views and analyzers, and for benchmarks.

The numbers mean nothing, but hang together as recorded ones do: operators and scopes have times,
extremes lie around the mean, operators at the bottom have a phase.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from deepcontext.profiler.format.frame import FrameKind, Phase
from deepcontext.profiler.format.metric import CALL_DURATION_NS, HOST_TIME_NS
from deepcontext.profiler.format.status import Status
from deepcontext.profiler.model.frame_table import FrameTable
from deepcontext.profiler.model.metric_rows import MetricRows
from deepcontext.profiler.model.profile import Profile
from deepcontext.profiler.model.run_info import RunInfo
from deepcontext.profiler.model.tree import Tree
from deepcontext.profiler.model.trust import CollectorReport, TrustReport

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from deepcontext.profiler.format.frame import Frame

# Kinds from the root down, as paths of a PyTorch program have them; the last two take turns below.
_UPPER_KINDS = (FrameKind.ROOT, FrameKind.THREAD, FrameKind.PYTHON, FrameKind.SCOPE)
_LOWER_KINDS = (FrameKind.PYTHON, FrameKind.MODULE, FrameKind.OPERATOR)
_NODES_PER_FRAME = 20
_NODES_PER_FILE = 200


def random_profile(nodes: int, *, seed: int = 0, depth: int = 40) -> Profile:
    """Return a made-up profile; the same arguments always give the same one.

    Args:
        nodes: number of nodes, the root included; at least 1.
        seed: of the random numbers.
        depth: levels of the tree at most, the root's included; at least 2.
    """
    random = np.random.default_rng(seed)
    level = _levels(random, nodes, depth)
    kind = _kinds(level)
    kind[level == level.max()] = FrameKind.OPERATOR
    kind[0] = FrameKind.ROOT
    frames, frame = _frames(random, kind)
    is_operator = kind == FrameKind.OPERATOR
    phase = np.where(is_operator, random.integers(Phase.FORWARD, Phase.OTHER, nodes), Phase.NONE)
    tree, _ = Tree.from_parents(_parents(random, level), frame, phase)
    timed = np.flatnonzero(np.isin(frames.kind, [FrameKind.OPERATOR, FrameKind.SCOPE])[tree.frame])
    return Profile(
        frames=frames,
        tree=tree,
        metrics=_metrics(random, timed),
        run=RunInfo(
            command=("python", "train.py"),
            script="train.py",
            cwd="/home/me",
            python="CPython 3.11.7",
            frameworks={"torch": "2.13.0"},
            wall_ns=10**10,
            exit_reason="exit",
            steps=100,
        ),
        trust=TrustReport(
            collectors=(CollectorReport("torch", Status.RAN, details={"torch": "2.13.0"}),),
            counters={"operator_events": len(timed)},
            hook_cost_ns_per_event=120.0,
        ),
    )


def frame_table(frames: Sequence[Frame]) -> FrameTable:
    """Return the table of some frames, in their order."""
    strings = list(dict.fromkeys(text for frame in frames for text in (frame.name, frame.file)))
    index = {text: place for place, text in enumerate(strings)}
    return FrameTable(
        kind=np.array([frame.kind for frame in frames], np.uint8),
        name=np.array([index[frame.name] for frame in frames], np.uint32),
        file=np.array([index[frame.file] for frame in frames], np.uint32),
        line=np.array([frame.line for frame in frames], np.uint32),
        strings=strings,
    )


def _levels(random: np.random.Generator, nodes: int, depth: int) -> npt.NDArray[np.intp]:
    """Return the level of each node, ascending and without a gap; lower levels are wider."""
    levels = min(nodes, depth) - 1
    spare = np.arange(1, levels + 1)
    extra = random.choice(spare, nodes - 1 - levels, p=spare / spare.sum()) if levels else spare
    return np.sort(np.concatenate([np.arange(levels + 1), extra]))


def _parents(random: np.random.Generator, level: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    starts = np.searchsorted(level, np.arange(level.max() + 2))
    above = np.maximum(level - 1, 0)
    return random.integers(starts[above], starts[above + 1])


def _kinds(level: npt.NDArray[np.intp]) -> npt.NDArray[np.uint8]:
    kinds = np.array(_UPPER_KINDS + _LOWER_KINDS, np.uint8)
    upper = len(_UPPER_KINDS)
    return kinds[np.where(level < upper, level, upper + level % len(_LOWER_KINDS))]


def _frames(
    random: np.random.Generator, kind: npt.NDArray[np.uint8]
) -> tuple[FrameTable, npt.NDArray[np.intp]]:
    """Return a table, and for each node a frame of its kind, shape (nodes,)."""
    prefixes = {FrameKind.MODULE: "Linear 'layer.", FrameKind.OPERATOR: "aten::op_"}
    files = [""] + [f"/home/me/part_{each}.py" for each in range(1 + len(kind) // _NODES_PER_FILE)]
    strings = list(files)
    columns: list[tuple[int, int, int, int]] = []
    frame = np.zeros(len(kind), np.intp)
    for each in FrameKind:
        nodes = np.flatnonzero(kind == each)
        distinct = 1 + len(nodes) // _NODES_PER_FRAME if len(nodes) else 0
        frame[nodes] = len(columns) + random.integers(0, max(distinct, 1), len(nodes))
        ending = "'" if each is FrameKind.MODULE else ""
        for number in range(distinct):
            file = 1 + number % (len(files) - 1) if each is FrameKind.PYTHON else 0
            columns.append((each, len(strings), file, 1 + number % 500 if file else 0))
            strings.append(f"{prefixes.get(each, each.label + '_')}{number}{ending}")
    table = np.array(columns, np.uint32)
    frames = FrameTable(
        kind=table[:, 0].astype(np.uint8),
        name=table[:, 1].copy(),
        file=table[:, 2].copy(),
        line=table[:, 3].copy(),
        strings=strings,
    )
    return frames, frame


def _metrics(random: np.random.Generator, node: npt.NDArray[np.intp]) -> dict[str, MetricRows]:
    rows = len(node)
    count = random.integers(1, 1000, rows)
    minimum, width = random.integers(500, 5_000, rows), random.integers(0, 5_000, rows)
    mean = minimum + width // 2
    keys, counts = node.astype(np.uint32), count.astype(np.uint64)
    own = (count * mean * random.uniform(0.1, 1.0, rows)).astype(np.int64)
    return {
        HOST_TIME_NS.name: MetricRows(HOST_TIME_NS, keys, counts, own),
        CALL_DURATION_NS.name: MetricRows(
            CALL_DURATION_NS,
            keys,
            counts,
            count * mean,
            minimum,
            minimum + width,
            (count * np.square(width / 4.0)).astype(np.float64),
        ),
    }
