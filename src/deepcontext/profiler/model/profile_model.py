"""What a profile holds, and the values of its metrics over the tree.

Does not read or write files (`store/`) nor select nodes (`query.py`); `Profile` adds both.
Invariant: nothing here changes after construction; derived columns are computed once and kept.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self, TypeVar, assert_never

import numpy as np

from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.format.metric import BYTES_MOVED, CALL_DURATION_NS, FLOPS, Aggregation
from deepcontext.profiler.model.bytes_moved import operator_bytes
from deepcontext.profiler.model.elapsed import ELAPSED_TIME_NS, elapsed_rows, is_known_between
from deepcontext.profiler.model.flops import operator_flops
from deepcontext.profiler.model.metric_table import DeferredRows, MetricTable
from deepcontext.profiler.model.recorded_operators import has_shapes
from deepcontext.profiler.model.tree import NO_NODE

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

    import numpy.typing as npt

    from deepcontext.profiler.format.frame import Frame
    from deepcontext.profiler.format.metric import MetricDescriptor
    from deepcontext.profiler.model.frame_table import FrameTable
    from deepcontext.profiler.model.metric_rows import MetricRows
    from deepcontext.profiler.model.recorded_operators import CountedOperators
    from deepcontext.profiler.model.run_info import RunInfo
    from deepcontext.profiler.model.tree import Tree
    from deepcontext.profiler.model.trust import TrustReport
    from deepcontext.profiler.model.windows import Window

Result = TypeVar("Result")


@dataclass(frozen=True, eq=False)
class ProfileModel:
    """One calling context tree with its metrics, and what is known about the run.

    Attributes:
        frames: the distinct frames.
        tree: the nodes; `tree.frame` indexes into `frames`.
        metrics: sparse rows by metric name, keyed by node id; a `MetricTable` once constructed.
        run: what was run.
        trust: how far the numbers can be trusted.
        sections: named payloads that collectors and analyzers add, JSON by custom.
        source: file that the profile was read from, "" for a profile made in memory.
        of_windows: the windows that the values are of; empty for the whole run.
        whole: the run that these windows are of; None for the whole run.
    """

    frames: FrameTable
    tree: Tree
    metrics: Mapping[str, MetricRows]
    run: RunInfo
    trust: TrustReport
    sections: Mapping[str, bytes] = field(default_factory=dict)
    source: str = ""
    of_windows: tuple[Window, ...] = ()
    whole: Self | None = field(default=None, repr=False)
    _dense: dict[tuple[str, str], npt.NDArray[np.int64]] = field(
        init=False, repr=False, default_factory=dict
    )
    _kept: dict[Hashable, Any] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        # Callers may pass a dict; a `MetricTable` lists the known metrics when one is unknown.
        stored = MetricTable.of(self.metrics).stored()
        derived = {}
        if is_known_between(stored):
            derived[ELAPSED_TIME_NS.name] = DeferredRows(
                ELAPSED_TIME_NS, lambda: elapsed_rows(self.frames, self.tree, stored)
            )
        if CALL_DURATION_NS.name in stored and has_shapes(self.frames):
            of_inputs = {FLOPS: operator_flops, BYTES_MOVED: operator_bytes}
            derived |= {
                descriptor.name: self._of_inputs(descriptor, count, stored)
                for descriptor, count in of_inputs.items()
                if descriptor.name not in stored
            }
        object.__setattr__(self, "metrics", stored.with_derived(derived))

    def _of_inputs(
        self,
        descriptor: MetricDescriptor,
        count: Callable[[FrameTable, Tree, MetricRows], CountedOperators],
        stored: MetricTable,
    ) -> DeferredRows:
        calls = CALL_DURATION_NS.name
        return DeferredRows(
            descriptor, lambda: count(self.frames, self.tree, stored[calls]).rows(descriptor)
        )

    def stored_metrics(self) -> Mapping[str, MetricRows]:
        """Return the measured metrics, without derived metrics."""
        return MetricTable.of(self.metrics).stored()

    def once(self, key: Hashable, compute: Callable[[], Result]) -> Result:
        """Return what `compute` returns; it is called once for each key and profile.

        Args:
            key: identifies the computation; two computations never share a key.
            compute: returns the result, which nobody may change.
        """
        if key not in self._kept:
            self._kept[key] = compute()
        result: Result = self._kept[key]
        return result

    def exclusive(self, metric: str) -> npt.NDArray[np.int64]:
        """Return the metric of each node without its descendants.

        Args:
            metric: metric name.

        Returns:
            Sum over the node's events, or for a `MAX` metric the largest event, in the metric's unit;
            shape (nodes,), int64, read-only; 0 where the node has no row.

        Raises:
            QueryError: the profile has no such metric; the message lists its metrics.
        """
        key = (metric, "exclusive")
        if key not in self._dense:
            rows = self.metrics[metric]
            self._dense[key] = self._spread(rows.node, rows.values())
        return self._dense[key]

    def inclusive(self, metric: str) -> npt.NDArray[np.int64]:
        """Return the metric of each node with its descendants.

        A `SUM` metric is summed over the subtree, a `MAX` metric gives the subtree's maximum; a
        `PROPERTY` describes the node alone, so its exclusive value is returned. Otherwise as
        `exclusive`.
        """
        key = (metric, "inclusive")
        if key not in self._dense:
            exclusive = self.exclusive(metric)
            match self.metrics[metric].descriptor.aggregation:
                case Aggregation.SUM:
                    dense = self.tree.inclusive(exclusive)
                case Aggregation.MAX:
                    dense = self.tree.inclusive_maximum(exclusive)
                case Aggregation.PROPERTY:
                    dense = exclusive
                case unknown:
                    assert_never(unknown)
            dense.flags.writeable = False
            self._dense[key] = dense
        return self._dense[key]

    def counts(self, metric: str) -> npt.NDArray[np.int64]:
        """Return the number of events of each node, shape (nodes,), int64; see `exclusive`."""
        key = (metric, "count")
        if key not in self._dense:
            rows = self.metrics[metric]
            self._dense[key] = self._spread(rows.node, rows.count.astype(np.int64))
        return self._dense[key]

    def frame(self, node: int) -> Frame:
        """Return the frame of a node."""
        return self.frames[int(self.tree.frame[node])]

    def is_kind(self, *kinds: FrameKind) -> npt.NDArray[np.bool_]:
        """Return whether each node's frame is of one of these kinds, shape (nodes,), bool, read-only."""

        def compute() -> npt.NDArray[np.bool_]:
            return _read_only(np.isin(self.frames.kind, kinds).take(self.tree.frame))

        return self.once(("is_kind", kinds), compute)

    def is_user_code(self) -> npt.NDArray[np.bool_]:
        """Return whether each frame is the user's code, computed once, read-only, shape (frames,).

        Code from a string is, where no other Python code called it (`python -c`), and where the user's
        code runs it (`exec`, as notebooks do), but not the functions that libraries generate, nor what
        `multiprocessing` passes to its processes.
        """

        def compute() -> npt.NDArray[np.bool_]:
            is_user = self.frames.is_user_code()
            from_string = self.frames.is_from_string() & ~is_user
            if not from_string.any():
                return _read_only(is_user)
            tree, is_python = self.tree, self.is_kind(FrameKind.PYTHON)
            typed = from_string[tree.frame]
            body = typed & self.frames.is_module_body()[tree.frame]
            caller = tree.nearest(is_python)[tree.parent]
            is_run = typed & (caller == NO_NODE) & (not self.run.is_of_multiprocessing)
            while True:
                files = self.frames.file[tree.frame[is_run]]
                is_user = is_user | (from_string & np.isin(self.frames.file, files))
                is_run = body & ~is_user[tree.frame] & is_user[tree.frame[caller]]
                if not is_run.any():
                    return _read_only(is_user)

        return self.once("is_user_code", compute)

    def path(self, node: int) -> tuple[Frame, ...]:
        """Return the call path of a node: its frames from the root down, the root included."""
        return tuple(self.frame(each) for each in self.tree.path(node))

    def _spread(
        self, node: npt.NDArray[np.uint32], values: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int64]:
        dense = np.zeros(len(self.tree), np.int64)
        dense[node] = values
        dense.flags.writeable = False
        return dense


def _read_only(values: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    values.flags.writeable = False
    return values
