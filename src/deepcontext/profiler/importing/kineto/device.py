"""Work of devices: the call that launched each kernel, copy and memset, idle time, exposed communication.

A record is joined with its launch by correlation id; where the file has no call with this id, with the
operator that has the record's external id. Idle time is charged to what the launching thread did meanwhile.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.profiler.format import gpu_metrics
from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.profiler.format.metric import GPU_TIME_NS, LAUNCH_COUNT
from deepcontext.profiler.importing.kineto.columns import NONE, Kind
from deepcontext.profiler.importing.kineto.measures import Covered, exclusive
from deepcontext.profiler.importing.reader import PROCESS_STEP
from deepcontext.profiler.importing.tree_builder import ROOT

if TYPE_CHECKING:
    import numpy.typing as npt

    from deepcontext.profiler.importing.kineto.columns import Columns
    from deepcontext.profiler.importing.kineto.nesting import Events, Nested
    from deepcontext.profiler.importing.tree_builder import TreeBuilder

    Ints = npt.NDArray[np.int64]
    Mask = npt.NDArray[np.bool_]

UNKNOWN_ORIGIN: Final = "GPU work of unknown origin"
_KINDS: Final = (FrameKind.KERNEL, FrameKind.COPY, FrameKind.COPY)
# Calls in which the host waits until the device is done.
_WAITS: Final = ("Synchronize",)
_WITH_HOST: Final = re.compile("HtoD|DtoH")
_PROFILER_FILES: Final = ("torch/profiler/", "torch/autograd/profiler.py")
_GRAPHS: Final = ("GraphLaunch",)
_SHAPE: Final = (
    gpu_metrics.GRID_BLOCK_COUNT,
    gpu_metrics.BLOCK_THREAD_COUNT,
    gpu_metrics.REGISTER_COUNT,
    gpu_metrics.SHARED_MEMORY_BYTES,
)
# Sources: as in `native/gpu/communication.cpp`.
_COMMUNICATION: Final = (
    *("ncclDevKernel", "ncclKernel", "ncclSymk", "ncclSymDevKernel", "rcclGeneric", "mscclKernel"),
    *("mscclpp", "cross_device_reduce", "allreduce_fusion", "nvshmem", "deep_ep::"),
    "multimem_all_reduce",
)


@dataclass(slots=True)
class DeviceCounts:
    """What became of the records of devices.

    Attributes:
        matched: joined with a call by correlation id.
        by_operator: joined with an operator by external id.
        unmatched: without either.
        graph: launched by a graph.
    """

    matched: int = 0
    by_operator: int = 0
    unmatched: int = 0
    graph: int = 0


class Work:
    """Records of devices with their launches, arrays of shape (records,).

    Attributes:
        begin, end: ns.
        node: node of each kernel, copy or memset.
        launch: index of the launching call among the events; `NONE`.
        early: records without a launch whose number is below that of the file's first call.
        counts: what became of the records.
    """

    def __init__(
        self, columns: Columns, events: Events, nested: Nested, builder: TreeBuilder
    ) -> None:
        device = columns.device
        self._columns, self._events, self._nested, self._builder = columns, events, nested, builder
        self.begin, self.name = device["begin"], device["name"]
        self.end = self.begin + device["duration"]
        self.device, self.stream = device["device"], device["stream"]
        self.counts = DeviceCounts()
        self.launch = self._launches()
        self.early = self._launched_before()
        self.node = self._nodes()

    def __len__(self) -> int:
        """Return the number of records."""
        return len(self.begin)

    def _launches(self) -> Ints:
        events = self._events
        calls = np.flatnonzero((events.kind == Kind.CALL) & (events.link >= 0))
        found = _match(events.link[calls], self._columns.device["correlation"])
        self.counts.matched = int((found != NONE).sum())
        return np.where(found == NONE, NONE, calls[found] if len(calls) else NONE)

    def _launched_before(self) -> int:
        """Return how many records without a launch have a number below that of their process's first call."""
        calls = self._events.link[(self._events.kind == Kind.CALL) & (self._events.link > 0)]
        number = self._columns.device["correlation"]
        number = number[(self.launch == NONE) & (number > 0)]
        firsts = {
            n: calls[calls // PROCESS_STEP == n].min()
            for n in set((calls // PROCESS_STEP).tolist())
        }
        return sum(
            int((number[number // PROCESS_STEP == n] < first).sum()) for n, first in firsts.items()
        )

    def _by_operator(self, without: Mask) -> Ints:
        """Return the operator with the external id of each record without a launch, `NONE` elsewhere."""
        events = self._events
        operators = np.flatnonzero((events.kind == Kind.OPERATOR) & (events.external >= 0))
        external = np.where(without, self._columns.device["external"], NONE)
        found = _match(events.external[operators], external)
        result = np.where(found == NONE, NONE, operators[found] if len(operators) else NONE)
        # Old files give a record without an operator the number of its launch.
        late = (result != NONE) & (_of(events.begin, result) > self.begin)
        return np.where(late, NONE, result)

    def _nodes(self) -> Ints:
        builder, nested = self._builder, self._nested
        operator = self._by_operator(self.launch == NONE)
        self.counts.by_operator = int((operator != NONE).sum())
        parents = builder.parents()
        call_node = _of(nested.node, self.launch)
        above = np.where(self.launch != NONE, parents[call_node], _of(nested.node, operator))
        lost = (self.launch == NONE) & (operator == NONE)
        self.counts.unmatched = int(lost.sum())
        if lost.any():
            frame = builder.frame(Frame(FrameKind.MARKER, UNKNOWN_ORIGIN))
            above[lost] = builder.child(ROOT, frame)
        is_graph = self._of_call(_GRAPHS) & (self.launch != NONE)
        self.counts.graph = int(is_graph.sum())
        above = np.where(is_graph, self._graph_nodes(above, is_graph), above)
        # One node for each pair of a place and a name.
        pairs, place = np.unique(above << 32 | self.name, return_inverse=True)
        frames = [builder.frame(self._frame(*each)) for each in self._columns.kernels]
        nodes = []
        for pair in pairs.tolist():
            parent, name = pair >> 32, pair & 0xFFFFFFFF
            nodes.append(builder.child(parent, frames[name], builder.phase_of(parent)))
        return np.array(nodes, np.int64)[place] if nodes else np.zeros(0, np.int64)

    def _graph_nodes(self, above: Ints, is_graph: Mask) -> Ints:
        frame = self._builder.frame(Frame(FrameKind.GRAPH, "graph replay"))
        result = above.copy()
        for parent in np.unique(above[is_graph]).tolist():
            node = self._builder.child(parent, frame, self._builder.phase_of(parent))
            result[is_graph & (above == parent)] = node
        return result

    def _of_call(self, parts: tuple[str, ...]) -> Mask:
        """Return which records were launched by calls with one of these words in their names."""
        named = np.array(
            [
                kind == Kind.CALL and any(part in name for part in parts)
                for kind, name in self._columns.names
            ]
            or [False],
            bool,
        )
        what = (
            self._events.what[self.launch] if len(self._events) else np.zeros(len(self), np.int32)
        )
        return named[what]

    def _frame(self, kind: int, name: str) -> Frame:
        if kind == 0:
            return Frame(FrameKind.KERNEL, name or "<kernel without a name>")
        # "Memcpy HtoD (Pinned -> Device)" and "Memset (Device)": as in recorded profiles.
        return Frame(_KINDS[kind], name.partition(" (")[0] or ("Memcpy", "Memset")[kind - 1])

    def measure(self, begin_ns: int) -> None:
        """Add the metrics of all records to the tree.

        Args:
            begin_ns: when the trace began, on the clock of the records.
        """
        builder, columns = self._builder, self._columns.device
        duration = self.end - self.begin
        # Work belongs to the step that launched it.
        at = np.where(self.launch != NONE, self._launched(), self.begin) - begin_ns
        builder.add(GPU_TIME_NS, self.node, duration, at)
        builder.add(LAUNCH_COUNT, self.node, np.ones(len(self), np.int64), at)
        moved = columns["bytes"]
        builder.add(gpu_metrics.COPY_BYTES, self.node[moved > 0], moved[moved > 0], at[moved > 0])
        direct = (self.launch != NONE) & ~self._of_call(_GRAPHS)
        delay = self.begin - self._launched()
        direct &= delay >= 0
        builder.add(gpu_metrics.QUEUE_DELAY_NS, self.node[direct], delay[direct], at[direct])
        self._shapes(columns["shape"])
        exposed = self._exposed()
        has = exposed > 0
        builder.add(gpu_metrics.EXPOSED_COMMUNICATION_NS, self.node[has], exposed[has], at[has])

    def _launched(self) -> Ints:
        """Return when each record was launched; anything for records without a launch."""
        return self._events.begin[self.launch] if len(self._events) else self.begin

    def _shapes(self, shape: Ints) -> None:
        if not self._columns.shapes:
            return
        known = np.flatnonzero(shape != NONE)
        # One event for each shape of a node.
        _, once = np.unique(self.node[known] << 32 | shape[known], return_index=True)
        chosen = known[once]
        table = np.array(self._columns.shapes, np.int64)[shape[chosen]]
        for column, metric in enumerate(_SHAPE):
            has = table[:, column] >= 0
            self._builder.add(metric, self.node[chosen[has]], table[has, column])

    def is_communication(self) -> Mask:
        """Return which records exchange data with other devices."""
        named = [
            kind == 0 and any(part in name for part in _COMMUNICATION)
            for kind, name in self._columns.kernels
        ]
        return np.array(named or [False], bool)[self.name] if len(self) else np.zeros(0, bool)

    def _exposed(self) -> Ints:
        """Return the time of each communication in which its device computed nothing, in ns."""
        talks = self.is_communication()
        exposed = np.zeros(len(self), np.int64)
        for device in np.unique(self.device[talks]).tolist():
            mine = np.flatnonzero(talks & (self.device == device))
            mine = mine[np.argsort(self.begin[mine], kind="stable")]
            computes = (self.device == device) & ~talks
            covered = Covered(self.begin[computes], self.end[computes])
            # What two communications share counts once.
            until = np.concatenate(([0], np.maximum.accumulate(self.end[mine])[:-1]))
            begin = np.clip(until, self.begin[mine], self.end[mine])
            exposed[mine] = (self.end[mine] - begin) - covered.within(begin, self.end[mine])
        return exposed

    def blocking(self) -> Mask:
        """Return which events are calls that returned after the copy that they asked for, shape (events,).

        A copy from or to pageable memory blocks, whatever the call's name says.
        """
        found = np.zeros(len(self._events), np.bool_)
        with_host = [
            kind == 1 and bool(_WITH_HOST.search(name)) for kind, name in self._columns.kernels
        ]
        chosen = np.array(with_host or [False], bool)[self.name] & (self.launch != NONE)
        launch = self.launch[chosen]
        found[launch[self._events.end[launch] >= self.end[chosen]]] = True
        return found

    def idle(self, begin_ns: int) -> list[dict[str, object]]:
        """Add idle time to the tree; return busy and idle time of each device.

        Args:
            begin_ns: when the trace began, on the clock of the records.
        """
        devices = np.unique(self.device)
        # Without any gap the devices were never idle, which differs from unknown.
        nothing = np.zeros(len(devices), np.int64)
        self._builder.add(gpu_metrics.GPU_IDLE_NS, nothing + ROOT, nothing)
        return [self._idle_of(device, begin_ns) for device in devices.tolist()]

    def _idle_of(self, device: int, begin_ns: int) -> dict[str, object]:
        mine = np.flatnonzero(self.device == device)
        order = mine[np.argsort(self.begin[mine], kind="stable")]
        busy_until = np.maximum.accumulate(self.end[order])
        later = order[1:]
        is_gap = self.begin[later] > busy_until[:-1]
        start, work = busy_until[:-1][is_gap], later[is_gap]
        self._charge(start, work, begin_ns)
        span = int(busy_until[-1] - self.begin[order[0]])
        idle = int((self.begin[work] - start).sum())
        streams = {
            str(stream): int((self.end - self.begin)[mine][self.stream[mine] == stream].sum())
            for stream in np.unique(self.stream[mine]).tolist()
        }
        return {
            "device": device,
            "span_ns": span,
            "busy_ns": span - idle,
            "idle_ns": idle,
            "late_ns": 0,
            "stream_busy_ns": streams,
        }

    def _charge(self, start: Ints, work: Ints, begin_ns: int) -> None:
        """Charge gaps: before the launch of the work that ended it the host was late, then the device."""
        builder, events, nested = self._builder, self._events, self._nested
        end, launch = self.begin[work], self.launch[work]
        known = launch != NONE
        if (~known).any():
            frame = builder.frame(Frame(FrameKind.MARKER, UNKNOWN_ORIGIN))
            nobody = np.full(int((~known).sum()), builder.child(ROOT, frame), np.int64)
            at = end[~known] - begin_ns
            builder.add(gpu_metrics.GPU_IDLE_NS, nobody, (end - start)[~known], at)
        start, end, launch, node = start[known], end[known], launch[known], self.node[work[known]]
        if not len(launch):
            return
        launched = np.clip(events.begin[launch], start, end)
        builder.add(
            gpu_metrics.GPU_GAP_NS, builder.parents()[node], end - launched, launched - begin_ns
        )
        thread = np.searchsorted(events.first, launch, "right") - 1
        for number in np.unique(thread).tolist():
            mine = (thread == number) & (launched > start)
            late = Covered(start[mine], launched[mine])
            part = slice(int(events.first[number]), int(events.first[number + 1]))
            inside = np.zeros(len(events), np.int64)
            inside[part] = late.within(events.begin[part], nested.end[part])
            inside[events.kind == Kind.CALL] = 0
            outermost = nested.parent[part] == NONE
            rest = late.total - int(inside[part][outermost].sum())
            own = exclusive(inside, nested)[part]
            has = own > 0
            at = events.end[part][has] - begin_ns
            builder.add(
                gpu_metrics.GPU_IDLE_NS, nested.node[part][has].astype(np.int64), own[has], at
            )
            if rest > 0:
                where = np.array([nested.thread_node[number]], np.int64)
                builder.add(gpu_metrics.GPU_IDLE_NS, where, np.array([rest], np.int64))


def _of(values: npt.NDArray[np.int32] | Ints, place: Ints) -> Ints:
    """Return values by place, anything where the place is `NONE`, also of no values."""
    return values[place].astype(np.int64) if len(values) else np.zeros(len(place), np.int64)


def _match(keys: Ints, wanted: Ints) -> Ints:
    """Return the place of each wanted number among the keys, `NONE` where it is not there."""
    if not len(keys):
        return np.full(len(wanted), NONE, np.int64)
    order = np.argsort(keys, kind="stable")
    place = np.searchsorted(keys[order], wanted)
    place[place == len(keys)] = 0
    return np.where((keys[order][place] == wanted) & (wanted >= 0), order[place], NONE)


def measure_calls(
    work: Work,
    columns: Columns,
    events: Events,
    nested: Nested,
    builder: TreeBuilder,
    begin_ns: int,
) -> None:
    """Add the time of calls of the GPU's interface, and of waits in them."""
    calls = np.flatnonzero(events.kind == Kind.CALL)
    if not len(calls):
        return
    duration = (events.end - events.begin)[calls]
    at = events.end[calls] - begin_ns
    nodes = nested.node[calls].astype(np.int64)
    builder.add(gpu_metrics.GPU_API_NS, nodes, duration, at)
    waits = np.array([any(part in name for part in _WAITS) for _, name in columns.names], bool)
    chosen = (waits[events.what[calls]] | work.blocking()[calls]) & ~_of_profiler(
        events, nested, calls
    )
    builder.add(gpu_metrics.SYNC_WAIT_NS, nodes[chosen], duration[chosen], at[chosen])


def _of_profiler(events: Events, nested: Nested, calls: Ints) -> Mask:
    """Return which calls torch.profiler made itself: it synchronises when it stops, which ends the trace."""
    last = int(calls[np.argmax(events.begin[calls])])
    around = int(nested.parent[last])
    is_own = around == NONE
    while around != NONE and not is_own:
        frame = events.places[int(events.what[around])].frame
        is_own = frame is not None and any(part in frame.file for part in _PROFILER_FILES)
        around = int(nested.parent[around])
    return np.asarray((calls == last) & is_own, np.bool_)


def device_section(
    vendor: str, facts: dict[str, object], devices: list[dict[str, object]]
) -> dict[str, bytes]:
    """Return the section of the devices, in the form of a recorded profile."""
    known = facts.get("deviceProperties")
    properties = (
        {each.get("id"): each for each in known if isinstance(each, dict)}
        if isinstance(known, list)
        else {}
    )
    for device in devices:
        found = properties.get(device["device"], {})
        device |= {
            "name": str(found.get("name", "")),
            "memory_bytes": found.get("totalGlobalMem", 0),
            "multiprocessor_count": found.get("numSms", 0),
        }
    payload = {
        "device_vendor": vendor,
        "interface": facts.get("interface", "kineto"),
        "interface_version": 0,
        "devices": devices,
    }
    return {f"gpu_{vendor}": json.dumps(payload).encode()}
