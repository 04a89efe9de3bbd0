"""Call paths with values, as pprof, speedscope and collapsed stacks hold them, to a profile.

Does not know formats. Of several values of a path, those that are known here become metrics; the others are
named in the trust report.
"""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.profiler.format.gpu_metrics import GPU_METRICS
from deepcontext.profiler.format.metric import (
    BYTES_MOVED,
    DEVICE_TIME_NS,
    FLOPS,
    GC_TIME_NS,
    SAMPLED_CPU_TIME_NS,
    SAMPLED_WAIT_TIME_NS,
    TRACED_TIME_NS,
    Aggregation,
    MetricDescriptor,
)
from deepcontext.profiler.format.status import Status
from deepcontext.profiler.importing.reader import Contents, Reading
from deepcontext.profiler.importing.tree_builder import ROOT, TreeBuilder
from deepcontext.profiler.model.run_info import RunInfo
from deepcontext.profiler.model.trust import CollectorReport

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_MOST: Final = 2**62
_PYTHON: Final = re.compile(r".*\.pyx?$|^<[a-z][^>]*>$")
_KNOWN: Final = {
    each.name: each
    for each in (
        *GPU_METRICS,
        *(SAMPLED_CPU_TIME_NS, SAMPLED_WAIT_TIME_NS, TRACED_TIME_NS, DEVICE_TIME_NS),
        *(BYTES_MOVED, FLOPS, GC_TIME_NS),
    )
    if each.aggregation is Aggregation.SUM
}
# Elapsed time is what deepcontext exports of a profile as one value; the others are parts of it.
_ELAPSED: Final = "elapsed_time_ns"
_PARTS: Final = frozenset({"host_time_ns", SAMPLED_CPU_TIME_NS.name, SAMPLED_WAIT_TIME_NS.name})
_NS: Final = {
    "nanoseconds": 1,
    "ns": 1,
    "microseconds": 10**3,
    "milliseconds": 10**6,
    "seconds": 10**9,
}
_CPU: Final = frozenset({"cpu", "samples", "cpu-time", "on-cpu"})
SAMPLES: Final = MetricDescriptor(
    "samples_count", "count", Aggregation.SUM, "samples or other units, as the file counts them"
)


class Stacks:
    """Collects call paths.

    Attributes:
        builder: the tree.
        paths: number of paths.
        metrics: the metric that each column of values became, None for one that is left out.
    """

    def __init__(self, columns: Sequence[tuple[str, str]]) -> None:
        """Decide what the columns of values are.

        Args:
            columns: name and unit of each.
        """
        self.builder = TreeBuilder()
        self.paths = 0
        self.columns = columns
        names = {name for name, _ in columns}
        parts = _PARTS if _ELAPSED in names else frozenset()
        self.metrics = [None if name in parts else _metric(name, unit) for name, unit in columns]
        self._scale = [_NS.get(unit, 1) for _, unit in columns]
        # Two columns of one metric would be added to each other.
        for number, metric in enumerate(self.metrics):
            if metric in self.metrics[:number]:
                self.metrics[number] = None
        self._values: dict[int, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))

    def add(self, frames: Iterable[int], values: Sequence[float]) -> None:
        """Add one path.

        Args:
            frames: numbers of `builder.frame`, the outermost first.
            values: one for each column.
        """
        node = ROOT
        for frame in frames:
            node = self.builder.child(node, frame)
        self.paths += 1
        for number, value in enumerate(values):
            scaled = round(value * self._scale[number])
            if self.metrics[number] is not None and 0 < scaled < _MOST:
                nodes, totals = self._values[number]
                nodes.append(node)
                totals.append(scaled)

    def has_values(self) -> bool:
        """Return whether any value was taken."""
        return bool(self._values)

    def contents(self, producer: str, run: RunInfo | None = None) -> Contents:
        """Return what a profile is made from; the number of paths is 0 where no value was taken."""
        for number, (nodes, totals) in self._values.items():
            metric = self.metrics[number]
            if metric is not None:
                self.builder.add(metric, np.array(nodes, np.int64), np.array(totals, np.int64))
        named = [
            (f"{name} ({unit})", metric is not None)
            for (name, unit), metric in zip(self.columns, self.metrics, strict=True)
        ]
        read = [name for name, is_read in named if is_read]
        left = [name for name, is_read in named if not is_read]
        details = {"values": ", ".join(read)}
        if left:
            details["values_left_out"] = ", ".join(left)
        why = "the file holds sums by call path: there are no steps, operators or times of day"
        return Contents(
            self.builder,
            run or RunInfo(),
            Reading(
                producer,
                {"paths_read": self.paths},
                (CollectorReport("python", Status.RAN, details={"paths": f"{self.paths:,}"}),),
                (why,),
                details,
            ),
        )


def frame_of(name: str, file: str = "", line: int = 0) -> Frame:
    """Return a frame of another sampler: of Python where the file says so, else native."""
    is_python = bool(_PYTHON.match(PurePath(file).name)) if file else False
    kind = FrameKind.PYTHON if is_python else FrameKind.NATIVE
    return Frame(kind, name or "<function without a name>", file, line if 0 <= line < 2**31 else 0)


def _metric(name: str, unit: str) -> MetricDescriptor | None:
    if name in _KNOWN:
        return _KNOWN[name]
    if unit in _NS:
        return SAMPLED_CPU_TIME_NS if name.lower() in _CPU else TRACED_TIME_NS
    if unit in {"count", "none", ""} or name == "samples":
        return SAMPLES
    return None
