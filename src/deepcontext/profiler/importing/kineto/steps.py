"""Steps of a trace: their times, the windows between them, and what a step is.

A step is what lies between the begins of two marks ``ProfilerStep#N`` of the profiler; the last one ends with
its mark. The first window, which has no step, is what comes before the first mark.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.profiler.format.metric import STEP_TIME_NS
from deepcontext.profiler.format.step_source import SECTION, StepSource
from deepcontext.profiler.importing.kineto.columns import NONE
from deepcontext.profiler.importing.tree_builder import ROOT
from deepcontext.profiler.importing.window_rows import WindowFacts

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from deepcontext.profiler.importing.kineto.columns import Step
    from deepcontext.profiler.importing.tree_builder import TreeBuilder

    Ints = npt.NDArray[np.int64]

_MOST_BINS: Final = 2048
_MOST_PARTS: Final = 128
_MOST_SLOWEST: Final = 8
_MOST_SLOW: Final = 64
_SLOW: Final = 1.5  # times the median
_FEWEST_FOR_WINDOWS: Final = 2


class Steps:
    """The steps of a trace.

    Attributes:
        edges: ns since the trace's begin, shape (steps + 1,): a step lies between two. Empty without marks.
    """

    def __init__(self, marks: Sequence[Step], begin_ns: int) -> None:
        ordered = sorted(marks, key=lambda each: (each.begin, each.number))
        # Threads may repeat a mark.
        distinct = [
            each
            for n, each in enumerate(ordered)
            if not n or each.number == NONE or each.number != ordered[n - 1].number
        ]
        edges = [each.begin for each in distinct]
        edges += [max(*(each.end for each in distinct), edges[-1])] if distinct else []
        self.edges = np.array(edges, np.int64) - begin_ns

    def __len__(self) -> int:
        """Return the number of steps."""
        return max(len(self.edges) - 1, 0)

    def times(self) -> list[int]:
        """Return the time of each step in ns."""
        return [int(each) for each in np.diff(self.edges)]

    def windows(self) -> list[WindowFacts]:
        """Return what comes before the first step, then windows of 1, 1, 2, 4 ... steps."""
        if len(self) < _FEWEST_FOR_WINDOWS:
            return []
        times, edges = self.times(), [int(each) for each in self.edges]
        found, begin, size = [WindowFacts(0, 0, 0, edges[0])], 0, 1
        while begin < len(self):
            end = min(begin + size, len(self))
            found.append(WindowFacts(begin, end, edges[begin], edges[end], tuple(times[begin:end])))
            begin = size = end
        return found

    def add_to(self, builder: TreeBuilder) -> None:
        """Add the times of steps."""
        times = np.array(self.times(), np.int64)
        builder.add(STEP_TIME_NS, np.full(len(times), ROOT, np.int64), times)

    def section(self) -> dict[str, bytes]:
        """Return the section that says what a step is, empty without marks."""
        if not len(self):
            return {}
        times = self.times()
        rows = [[n + 1, int(self.edges[n + 1]), time] for n, time in enumerate(times)]
        usual = float(np.median(times))
        slow = [row for row in rows[1:] if row[2] > _SLOW * usual]
        size = -(-len(times) // _MOST_PARTS)
        parts = [times[n : n + size] for n in range(0, len(times), size)]
        content = {
            "source": StepSource.TRACE.name.lower(),
            "what": "",
            "file": "",
            "line": 0,
            "count": len(times),
            "bins": [[time, 1] for time in sorted(times)[:_MOST_BINS]],
            "parts": [[len(part), sum(part), min(part), max(part)] for part in parts],
            "slowest": sorted(rows, key=lambda row: -row[2])[:_MOST_SLOWEST],
            "slow": slow[:_MOST_SLOW],
            "slow_count": len(slow),
            "slow_total_ns": sum(row[2] for row in slow),
        }
        return {SECTION: json.dumps(content).encode()}
