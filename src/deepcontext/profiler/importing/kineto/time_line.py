"""Which steps of a trace are kept whole for the time line: the slowest and some others, or all of it."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.profiler.format.node_sections import EXEMPLARS
from deepcontext.profiler.importing.exemplar_rows import KeptStep, Lane, exemplars_section
from deepcontext.profiler.importing.kineto.columns import Kind

if TYPE_CHECKING:
    import numpy.typing as npt

    from deepcontext.profiler.importing.kineto.device import Work
    from deepcontext.profiler.importing.kineto.nesting import Events, Nested
    from deepcontext.profiler.importing.kineto.steps import Steps
    from deepcontext.profiler.importing.tree_builder import TreeBuilder

    Ints = npt.NDArray[np.int64]

_SLOWEST, _AT_RANDOM, _MARKED = 1, 2, 4  # `ExemplarReason`
_MOST_OF_EACH: Final = 4
_MOST_THREADS: Final = 1_000
# Of all kept steps together: 20 bytes each, before compression.
MOST_SPANS: Final = 2_000_000


def keep_steps(
    steps: Steps, lanes: list[Lane], builder: TreeBuilder, wall_ns: int
) -> tuple[int, int]:
    """Add the section of kept steps; return how many are kept, and how many were too large.

    Args:
        steps: the steps; without any, the whole trace is kept.
        lanes: all threads and streams.
        builder: the tree.
        wall_ns: elapsed time of the trace.
    """
    chosen = _chosen(steps) if len(steps) else [KeptStep(1, 0, max(wall_ns, 1), _MARKED)]
    kept, spans = [], 0
    for step in chosen:
        size = sum(
            int(((lane.begin < step.end_ns) & (lane.end > step.begin_ns)).sum()) for lane in lanes
        )
        if spans + size <= MOST_SPANS:
            spans += size
            kept.append(step)
    kept.sort(key=lambda step: step.number)
    if spans:
        builder.section(
            EXEMPLARS, lambda place, count: exemplars_section(kept, lanes, place, count)
        )
    return len(kept) if spans else 0, len(chosen) - len(kept)


def _chosen(steps: Steps) -> list[KeptStep]:
    """Return the slowest steps, and others at random; the same ones at every reading."""
    times = steps.times()
    slowest = sorted(range(len(times)), key=lambda n: -times[n])[:_MOST_OF_EACH]
    others = [n for n in range(len(times)) if n not in slowest]
    picked = random.Random(0).sample(others, min(len(others), _MOST_OF_EACH))  # noqa: S311
    if not others:  # few steps are all kept: compare the slowest with the usual ones
        picked = slowest[1:]
        slowest = slowest[:1]
    return [
        KeptStep(n + 1, int(steps.edges[n]), int(steps.edges[n + 1]), reason)
        for found, reason in ((slowest, _SLOWEST), (picked, _AT_RANDOM))
        for n in found
    ]


def lanes_of(
    events: Events, nested: Nested, work: Work, names: list[str], vendor: str, begin_ns: int
) -> list[Lane]:
    """Return the lanes of the threads and streams of a trace.

    Args:
        events: events of the host.
        nested: their nodes.
        work: records of devices.
        names: names of the threads.
        vendor: name of the lanes of devices.
        begin_ns: when the trace began, on the clock of the events.
    """
    lanes = []
    is_shown = (events.kind == Kind.OPERATOR) | (events.kind == Kind.SCOPE)
    # A view draws no more threads; the largest are kept.
    largest = np.sort(np.argsort(-np.diff(events.first), kind="stable")[:_MOST_THREADS])
    for number in largest.tolist():
        name, first, last = names[number], int(events.first[number]), int(events.first[number + 1])
        mine = first + np.flatnonzero(is_shown[first:last])
        if len(mine):
            begin, end = events.begin[mine] - begin_ns, events.end[mine] - begin_ns
            lanes.append(Lane(name, None, 0, begin, end, nested.node[mine].astype(np.int64)))
    pairs = sorted(set(zip(work.device.tolist(), work.stream.tolist(), strict=True)))
    for device, stream in pairs:
        mine = np.flatnonzero((work.device == device) & (work.stream == stream))
        begin, end = work.begin[mine] - begin_ns, work.end[mine] - begin_ns
        lanes.append(Lane(vendor, max(device, 0), stream, begin, end, work.node[mine]))
    return lanes
