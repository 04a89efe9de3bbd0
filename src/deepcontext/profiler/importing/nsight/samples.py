"""Samples of the CPU in an export: processor time outside calls and ranges, which are measured.

An export does not say for how long a sample stands: it is taken as the usual time between two samples of a
thread that ran.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np

from deepcontext.profiler.format.frame import MAIN_THREAD, Frame, FrameKind
from deepcontext.profiler.format.metric import SAMPLED_CPU_TIME_NS
from deepcontext.profiler.importing.kineto.measures import Covered
from deepcontext.profiler.importing.nsight.tables import CALLS, RANGES, SAMPLES, THREAD, Tables
from deepcontext.profiler.importing.tree_builder import ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deepcontext.profiler.importing.tree_builder import TreeBuilder

    Thread = tuple[int | str, int | str]


def add_samples(
    tables: Tables, builder: TreeBuilder, names: Mapping[Thread, str], main: Thread | None
) -> None:
    """Add the samples below their threads.

    Args:
        tables: the export.
        builder: the tree.
        names: names of the threads that have calls or ranges, in brackets.
        main: the main thread.
    """
    samples: dict[Thread, list[tuple[int, int]]] = defaultdict(list)
    for process, thread, start, number in tables.rows(SAMPLES, THREAD, "start", "id"):
        samples[process, thread].append((start, number))
    stacks, measured = _stacks(tables), _measured(tables)
    gaps = [np.diff(sorted(start for start, _ in rows)) for rows in samples.values()]
    period = int(np.median(np.concatenate(gaps))) if any(map(len, gaps)) else 0
    nodes: list[int] = []
    for thread, rows in samples.items():
        name = MAIN_THREAD if thread == main else names.get(thread, "(thread)")[1:-1]
        above = builder.child(ROOT, builder.frame(Frame(FrameKind.THREAD, name)))
        at = np.array([start for start, _ in rows], np.int64)
        covered = measured.get(thread)
        inside = covered.within(at, at + 1) if covered else np.zeros(len(at), np.int64)
        for (_, number), is_measured in zip(rows, inside.tolist(), strict=True):
            if not is_measured:
                nodes.append(_below(builder, above, stacks.get(number, [])))
    builder.add(
        SAMPLED_CPU_TIME_NS, np.array(nodes, np.int64), np.full(len(nodes), period, np.int64)
    )


def _below(builder: TreeBuilder, node: int, frames: list[Frame]) -> int:
    for frame in frames:
        node = builder.child(node, builder.frame(frame))
    return node


def _stacks(tables: Tables) -> dict[int, list[Frame]]:
    """Return the frames of each sample, the outermost first."""
    found: dict[int, list[tuple[int, Frame]]] = defaultdict(list)
    known: dict[tuple[Any, Any], Frame] = {}
    columns = ("id", "stackDepth", "symbol", "module")
    for number, depth, symbol, module in tables.rows("SAMPLING_CALLCHAINS", *columns):
        frame = known.get((symbol, module))
        if frame is None:
            library = tables.strings.get(module, "")
            name = tables.strings.get(symbol, "") or f"<{PurePath(library).name or 'unknown'}>"
            frame = known[symbol, module] = Frame(FrameKind.NATIVE, name, library)
        found[number].append((depth or 0, frame))
    # Depth 0 is the innermost frame.
    return {
        number: [frame for _, frame in sorted(rows, key=lambda row: -row[0])]
        for number, rows in found.items()
    }


def _measured(tables: Tables) -> dict[Thread, Covered]:
    spans: dict[Thread, list[tuple[int, int]]] = defaultdict(list)
    for table in (CALLS, RANGES):
        rows = tables.rows(table, THREAD, "start", "end", where="end IS NOT NULL")
        for process, thread, start, end in rows:
            spans[process, thread].append((start, end))
    return {thread: Covered(*np.array(rows, np.int64).T) for thread, rows in spans.items()}
