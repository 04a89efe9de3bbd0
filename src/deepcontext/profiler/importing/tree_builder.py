"""Builds a calling context tree and its metrics from what a reader finds; shared by all readers.

Nodes are numbered as they are made; `TreeBuilder.finish` brings them into pre-order. Sums are computed over
arrays of events. Invariant: the number of nodes is bounded; beyond the bound, events count for the deepest
node that exists, and `cut` says how often.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.profiler.format.frame import Frame, FrameKind, Phase
from deepcontext.profiler.format.metric import CALL_DURATION_NS, KNOWN_METRICS, Aggregation
from deepcontext.profiler.format.node_sections import WINDOWS
from deepcontext.profiler.importing.sums import Sums
from deepcontext.profiler.importing.window_rows import windows_section
from deepcontext.profiler.model.frame_table import FrameTable
from deepcontext.profiler.model.metric_rows import MetricRows
from deepcontext.profiler.model.tree import Tree

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy.typing as npt

    from deepcontext.profiler.format.metric import MetricDescriptor
    from deepcontext.profiler.importing.window_rows import WindowFacts

    Ints = npt.NDArray[np.int64]

ROOT: Final = 0
MOST_NODES: Final = 4_000_000
_MOST_PARTS: Final = 16


@dataclass(frozen=True, slots=True)
class Built:
    """A finished tree.

    Attributes:
        frames: the distinct frames.
        tree: the tree in pre-order.
        metrics: rows by metric name.
        place: new id of each node by the builder's id, shape (nodes,).
    """

    frames: FrameTable
    tree: Tree
    metrics: Mapping[str, MetricRows]
    place: Ints


@dataclass(slots=True)
class _Metric:
    """What was added of one metric."""

    descriptor: MetricDescriptor
    parts: list[Sums] = field(default_factory=list)

    def add(self, part: Sums) -> None:
        """Add sums, and join the parts before they are many."""
        self.parts.append(part)
        if len(self.parts) > _MOST_PARTS:
            self.parts = [Sums.together(self.parts)]

    def sums(self) -> Sums:
        """Return all sums."""
        return Sums.together(self.parts)


class TreeBuilder:
    """Collects frames, nodes and values.

    Attributes:
        cut: number of nodes that were not made because of the bound.
    """

    def __init__(self, most_nodes: int = MOST_NODES) -> None:
        self._most = most_nodes
        self.cut = 0
        self._frames: dict[Frame, int] = {}
        self._frame_list: list[Frame] = []
        self._parent = array("i", [0])
        self._frame = array("i", [self.frame(Frame(FrameKind.ROOT, "root"))])
        self._phase = array("B", [Phase.NONE])
        self._children: dict[tuple[int, int, int], int] = {}
        self._metrics: dict[str, _Metric] = {}
        self._sections: dict[str, Callable[[Ints, int], bytes]] = {}
        self._windows: Sequence[WindowFacts] = ()
        self._ends = np.zeros(0, np.int64)

    def __len__(self) -> int:
        return len(self._parent)

    def frame(self, frame: Frame) -> int:
        """Return the number of a frame."""
        number = self._frames.get(frame)
        if number is None:
            number = self._frames[frame] = len(self._frame_list)
            self._frame_list.append(frame)
        return number

    def child(self, parent: int, frame: int, phase: Phase = Phase.NONE) -> int:
        """Return the node of a frame below a node; the parent itself beyond the bound."""
        key = (parent, frame, phase)
        node = self._children.get(key)
        if node is None:
            if len(self._parent) >= self._most:
                self.cut += 1
                return parent
            node = self._children[key] = len(self._parent)
            self._parent.append(parent)
            self._frame.append(frame)
            self._phase.append(phase)
        return node

    def phase_of(self, node: int) -> Phase:
        """Return the phase of a node."""
        return Phase(self._phase[node])

    def name_of(self, node: int) -> str:
        """Return the name of a node's frame."""
        return self._frame_list[self._frame[node]].name

    def kind_of(self, node: int) -> FrameKind:
        """Return the kind of a node's frame."""
        return self._frame_list[self._frame[node]].kind

    def window_ends(self) -> list[int]:
        """Return the ends of the windows, in ns."""
        return [each.end_ns for each in self._windows]

    def parents(self) -> Ints:
        """Return the parent of each node, shape (nodes,); of the root the root itself."""
        return np.array(self._parent, np.int64)

    def cut_into(self, windows: Sequence[WindowFacts]) -> None:
        """Say into which windows the run is cut; before values are added.

        Args:
            windows: consecutive, in order of time.
        """
        self._windows = windows
        self._ends = np.array([each.end_ns for each in windows], np.int64)

    def add(
        self,
        descriptor: MetricDescriptor,
        node: Ints | npt.NDArray[np.int32],
        value: Ints,
        at: Ints | None = None,
    ) -> None:
        """Add values of a metric.

        Args:
            descriptor: the metric.
            node: node of each event, shape (events,).
            value: value of each event, shape (events,).
            at: when each event counts, ns on the clock of the windows, shape (events,); None for values that
                describe nodes.
        """
        if not len(node):
            return
        window = np.full(len(node), len(self._ends), np.int64)
        if at is not None and len(self._ends):
            window = np.searchsorted(self._ends, at, "left")
        metric = self._metrics.setdefault(descriptor.name, _Metric(descriptor))
        metric.add(Sums.of(np.asarray(node, np.int64), np.asarray(value, np.int64), window))

    def section(self, name: str, make: Callable[[Ints, int], bytes]) -> None:
        """Add a section whose payload refers to nodes.

        Args:
            name: its name.
            make: returns the payload; called with the new ids by the builder's ids, shape (nodes,), and the
                number of nodes.
        """
        self._sections[name] = make

    def finish(self) -> Built:
        """Return the tree in pre-order with its metrics."""
        parent = np.array(self._parent, np.int64)
        tree, order = Tree.from_parents(
            parent, np.array(self._frame, np.int64), np.array(self._phase, np.uint8)
        )
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        metrics = {
            name: _rows(metric.descriptor, metric.sums().by_node(place))
            for name, metric in self._metrics.items()
        }
        for known in KNOWN_METRICS:  # a profile has them, with or without rows
            metrics.setdefault(known.name, _no_rows(known))
        return Built(_table(self._frame_list), tree, metrics, place)

    def sections(self, built: Built) -> dict[str, bytes]:
        """Return the sections that refer to nodes."""
        found = {name: make(built.place, len(built.tree)) for name, make in self._sections.items()}
        if self._windows:
            rows = {
                name: metric.sums()
                for name, metric in self._metrics.items()
                if _adds_up(metric.descriptor)
            }
            found[WINDOWS] = windows_section(self._windows, rows, built.place)
        return found


def _no_rows(metric: MetricDescriptor) -> MetricRows:
    none = np.zeros(0, np.int64)
    return MetricRows(metric, none.astype(np.uint32), none.astype(np.uint64), none)


def _adds_up(metric: MetricDescriptor) -> bool:
    return metric.aggregation is Aggregation.SUM or metric is CALL_DURATION_NS


def _rows(descriptor: MetricDescriptor, sums: Sums) -> MetricRows:
    has_spread = descriptor.aggregation is not Aggregation.SUM or descriptor.name in _SPREAD
    return MetricRows(
        descriptor,
        sums.node.astype(np.uint32),
        sums.count.astype(np.uint64),
        sums.total,
        sums.minimum if has_spread else None,
        sums.maximum if has_spread else None,
        sums.m2 if has_spread else None,
    )


# Metrics that add up and whose single events a view shows.
_SPREAD: Final = frozenset({"gpu_time_ns", "queue_delay_ns", "sync_wait_ns"})


def _table(frames: list[Frame]) -> FrameTable:
    strings: dict[str, int] = {}

    def text(value: str) -> int:
        return strings.setdefault(value, len(strings))

    names = [text(each.name) for each in frames]
    files = [text(each.file) for each in frames]
    return FrameTable(
        kind=np.array([each.kind for each in frames], np.uint8),
        name=np.array(names, np.uint32),
        file=np.array(files, np.uint32),
        line=np.array([each.line for each in frames], np.uint32),
        strings=tuple(strings),
    )
