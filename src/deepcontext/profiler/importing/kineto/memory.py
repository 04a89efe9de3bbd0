"""Memory from the allocations of a trace (``profile_memory=True``): by the operator that allocated.

A trace has each allocation and free with the total of its device. What was allocated before the trace began
has no place: totals count it, call paths do not.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.profiler.format.memory_metrics import GPU_PREFIX, METRICS
from deepcontext.profiler.importing.kineto.columns import NONE

if TYPE_CHECKING:
    import numpy.typing as npt

    from deepcontext.profiler.importing.kineto.columns import Columns
    from deepcontext.profiler.importing.kineto.nesting import Events, Nested
    from deepcontext.profiler.importing.kineto.steps import Steps
    from deepcontext.profiler.importing.tree_builder import TreeBuilder

    Ints = npt.NDArray[np.int64]
    Mask = npt.NDArray[np.bool_]

SECTION: Final = "memory"
_LAYOUT: Final = 1  # `summaries/memory.py` reads it
_BY_NAME: Final = {metric.name: metric for metric in METRICS}


class Memory:
    """The allocations and frees of a trace, in order of time, arrays of shape (events,)."""

    def __init__(self, columns: Columns, events: Events, nested: Nested, begin_ns: int) -> None:
        memory = columns.memory
        order = np.argsort(memory["at"], kind="stable")
        self._at, self._size = memory["at"][order], memory["size"][order]
        self._address, self._device = memory["address"][order], memory["device"][order]
        self._allocated, self._reserved = memory["allocated"][order], memory["reserved"][order]
        self._begin_ns = begin_ns
        self._node = self._nodes(columns, memory["thread"][order], events, nested)

    def _nodes(self, columns: Columns, thread: Ints, events: Events, nested: Nested) -> Ints:
        """Return the node of the innermost event around each allocation, 0 (the root) without one."""
        number = {columns.thread_number(each): n for n, each in enumerate(events.threads)}
        node = np.zeros(len(self._at), np.int64)
        for known in np.unique(thread).tolist():
            of_thread = number.get(known)
            if of_thread is None:
                continue
            first, last = int(events.first[of_thread]), int(events.first[of_thread + 1])
            mine = np.flatnonzero(thread == known)
            place = np.searchsorted(events.begin[first:last], self._at[mine], "right") - 1
            event = np.where(place >= 0, first + place, NONE)
            while True:
                over = (event != NONE) & (events.end[event] < self._at[mine])
                if not over.any():
                    break
                event = np.where(over, nested.parent[event], event)
            inside = event != NONE
            node[mine] = np.where(inside, nested.node[event], nested.thread_node[of_thread])
        return node

    def measure(self, builder: TreeBuilder, steps: Steps) -> dict[str, bytes]:
        """Add the metrics to the tree; return the section, empty without allocations."""
        if not len(self._at):
            return {}
        pools = [
            self._pool(int(device), builder, steps) for device in np.unique(self._device).tolist()
        ]
        content = {
            "version": _LAYOUT,
            "steps": len(steps),
            "step_kind": "mark",
            "growth_since_step": 0,
            "untracked_bytes": 0,
            "pools": pools,
        }
        return {SECTION: json.dumps(content).encode()}

    def _pool(self, device: int, builder: TreeBuilder, steps: Steps) -> dict[str, object]:
        """Add the metrics of one memory; return what the section says of it."""
        prefix = "" if device == NONE else GPU_PREFIX
        mine = np.flatnonzero(self._device == device)
        made = mine[self._size[mine] > 0]
        at = self._at - self._begin_ns
        builder.add(_BY_NAME[prefix + "alloc_bytes"], self._node[made], self._size[made], at[made])
        freed = self._freed(mine)
        peak = int(mine[np.argmax(self._allocated[mine])])
        held = made[(made <= peak) & (freed[made] > peak)]
        builder.add(_BY_NAME[prefix + "peak_bytes"], self._node[held], self._size[held])
        live = made[freed[made] == len(self._at)]
        builder.add(_BY_NAME[prefix + "live_bytes"], self._node[live], self._size[live])
        most = max(int(self._allocated[peak]), int(self._size[held].sum()))
        peak_at = int(at[peak])
        return {
            "name": "cpu" if device == NONE else f"cuda:{device}",
            "is_device": device != NONE,
            "allocations": len(made),
            "alloc_bytes": int(self._size[made].sum()),
            "live_bytes": max(int(self._allocated[mine[-1]]), 0),
            "peak_bytes": most,
            "peak_after_ns": max(peak_at, 0),
            "peak_step": max(int(np.searchsorted(steps.edges, peak_at, "right")) - 1, 0),
            "growth_bytes": 0,
            "reserved_peak_bytes": max(int(self._reserved[mine].max()), 0),
            "peak_role_bytes": {},  # a trace does not say what memory is for
        }

    def _freed(self, mine: Ints) -> Ints:
        """Return the place of the free of each allocation, the number of events where it has none."""
        result = np.full(len(self._at), len(self._at), np.int64)
        # By address, then by time: a free follows its allocation.
        order = mine[np.lexsort((mine, self._address[mine]))]
        size, address = self._size[order], self._address[order]
        pairs = (size[:-1] > 0) & (size[1:] < 0) & (address[:-1] == address[1:])
        result[order[:-1][pairs]] = order[1:][pairs]
        return result
