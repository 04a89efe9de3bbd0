"""Where the elapsed time of a process went: divided completely, each part once, by cause and by line.

The whole is the main thread's time. Operators are measured there, the rest is sampled, or read from a trace,
so that the causes add up to the elapsed time; what none of them saw is `Cause.UNKNOWN`. Reads metrics,
formats nothing.
Invariants: the parts of an account add up to its whole; so do the lines, the time outside the program's
own lines, the imports and the unknown part.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.profiler.format.frame import FrameKind, Phase
from deepcontext.profiler.format.metric import (
    GC_TIME_NS,
    GPU_TIME_NS,
    OPERATOR_READY_TIME_NS,
    SAMPLED_COLLECTIVE_WAIT_TIME_NS,
    SAMPLED_CPU_TIME_NS,
    SAMPLED_GIL_TIME_NS,
    SAMPLED_GIL_WAIT_TIME_NS,
    SAMPLED_IO_WAIT_TIME_NS,
    SAMPLED_LOCK_WAIT_TIME_NS,
    SAMPLED_PROCESS_WAIT_TIME_NS,
    SAMPLED_READY_TIME_NS,
    SAMPLED_SLEEP_TIME_NS,
    SAMPLED_WAIT_TIME_NS,
    TRACED_TIME_NS,
)
from deepcontext.profiler.model import elapsed
from deepcontext.profiler.model.grouping import NO_GROUP, sums
from deepcontext.profiler.model.metric_values import exclusive_or_zeros
from deepcontext.profiler.model.tree import NO_NODE
from deepcontext.profiler.summaries import time_between_operators
from deepcontext.profiler.summaries.lines import UserLines
from deepcontext.profiler.summaries.native_callees import callees
from deepcontext.profiler.summaries.process_waits import WAITS, kinds_of_waits
from deepcontext.profiler.summaries.roles import Role
from deepcontext.profiler.summaries.setup_time import compiling, compiling_in_operators, importing

if TYPE_CHECKING:
    from collections.abc import Callable, Container

    import numpy.typing as npt

    from deepcontext.profiler.format.frame import Frame
    from deepcontext.profiler.model.profile_model import ProfileModel as Profile
    from deepcontext.profiler.summaries.native_callees import Callee

    Ints = npt.NDArray[np.int64]
    Mask = npt.NDArray[np.bool_]


class Cause(enum.StrEnum):
    """What a part of the elapsed time was spent on, in the order in which views list the causes."""

    IMPORTING = "importing"
    COMPILING = "compiling"
    FORWARD = "forward"
    BACKWARD = "backward"
    RECOMPUTE = "recompute"
    OPTIMIZER = "optimizer"
    LOADING = "data_loading"
    OPERATORS = "operators"  # of no such phase
    PROGRAMS = "compiled_programs"  # of JAX
    COLLECTIVES = "collectives"
    PYTHON = "python"  # running with the GIL: Python, and native code that keeps the GIL
    NATIVE = "native"  # running without the GIL
    OUTSIDE = "outside_operators"  # running or waiting: a trace does not say which
    GARBAGE = "garbage_collection"
    DEVICE = "waiting_device"
    DATA = "waiting_data"  # for workers of a data loader
    PROCESS = "waiting_process"  # for a process, its queue or pipe, or a pool of processes
    LOCK = "waiting_lock"  # for a lock, or otherwise for another thread
    GIL = "waiting_gil"
    IO = "waiting_io"
    SLEEP = "sleeping"
    PROCESSOR = "waiting_processor"  # the thread could run, other threads had the processors
    WAITING = "waiting"  # for something else, or recorded before waits were divided
    UNKNOWN = "unknown"


_OF_PHASE: Final = {
    Phase.FORWARD: Cause.FORWARD,
    Phase.BACKWARD: Cause.BACKWARD,
    Phase.RECOMPUTE: Cause.RECOMPUTE,
    Phase.OPTIMIZER: Cause.OPTIMIZER,
    Phase.DATA_LOADING: Cause.LOADING,
}
# Waits by the system call that the thread was in.
_OF_CALL: Final = (
    (Cause.GIL, SAMPLED_GIL_WAIT_TIME_NS),
    (Cause.LOCK, SAMPLED_LOCK_WAIT_TIME_NS),
    (Cause.PROCESS, SAMPLED_PROCESS_WAIT_TIME_NS),
    (Cause.IO, SAMPLED_IO_WAIT_TIME_NS),
    (Cause.SLEEP, SAMPLED_SLEEP_TIME_NS),
)
_KINDS: Final = ("operators", "running", "waiting", "traced")
_OF_OTHERS: Final = (
    *_OF_PHASE.values(),
    Cause.OPERATORS,
    Cause.PROGRAMS,
    Cause.PYTHON,
    Cause.NATIVE,
    Cause.OUTSIDE,
    Cause.IO,
    Cause.SLEEP,
)
_MOST_CALLEES: Final = 3
_SYNC_WAIT: Final = "sync_wait_ns"
_IDLE: Final = "gpu_idle_ns"
_GAP: Final = "gpu_gap_ns"
# Names that collectors give to frames.
_DEVICE_WAITS: Final = ("jax: wait for the device", "jax: copy to host")
_PEER_WAITS: Final = ("jax: join the other processes",)
_PROGRAMS: Final = ("jit(", "pmap(")
_COLLECTIVE: Final = "c10d::"
# Functions in which a thread waits for a backward pass.
_AUTOGRAD: Final = "torch/autograd/"
# The file of torch.distributed in which a thread waits for other ranks.
_DISTRIBUTED: Final = "torch/distributed/distributed_c10d.py"
_RUN_BACKWARD: Final = ("backward", "grad", "_engine_run_backward")


@dataclass(frozen=True, slots=True)
class Place:
    """The time of one line, without deeper lines of the program.

    Attributes:
        frame: the function, its file and the line; None for time outside the program's own lines.
        time_ns: elapsed time.
        causes: its parts, in the order of `Cause`, without empty parts; they add up to `time_ns`.
        gpu_ns: time of the kernels and copies launched there, which is no part of `time_ns`.
        callees: the native functions that ran there between operators, on any thread, largest first.
    """

    frame: Frame | None
    time_ns: int
    causes: tuple[tuple[Cause, int], ...]
    gpu_ns: int
    callees: tuple[Callee, ...] = ()

    def of(self, cause: Cause) -> int:
        """Return the time of a cause, in ns."""
        return dict(self.causes).get(cause, 0)

    def without(self, cause: Cause) -> int:
        """Return the time of all other causes, in ns."""
        return sum(value for each, value in self.causes if each is not cause)


@dataclass(frozen=True, slots=True)
class GpuAccount:
    """What the GPUs did, in ns.

    Attributes:
        busy_ns: time of kernels and copies; kernels that overlap count each.
        copy_ns: part of `busy_ns` in copies and memsets.
        idle_ns: nothing was queued: the host was late.
        gap_ns: nothing ran although work was queued: latency, dependencies.
        is_idle_known: whether idle time was measured.
        late: the lines that the host was at while a GPU idled, with that time, most first.
    """

    busy_ns: int
    copy_ns: int
    idle_ns: int
    gap_ns: int
    is_idle_known: bool
    late: tuple[tuple[Frame, int], ...]

    @property
    def span_ns(self) -> int:
        """From the first to the last work."""
        return self.busy_ns + self.idle_ns + self.gap_ns


@dataclass(frozen=True, slots=True)
class Account:
    """The elapsed time of a process; of all ranks together in a merged profile.

    Attributes:
        whole_ns: the elapsed time.
        causes: its parts, in the order of `Cause`, without empty parts; they add up to `whole_ns`.
        lines: the program's own lines without imports, longest first; the last may be the time outside
            them.
        imports: the lines whose imports took the time of `Cause.IMPORTING`, longest first.
        others: what lines did on other threads, without waits for locks, in which threads wait for work.
        gpu: None where no GPU worked.
        ready_ns: how long the main thread could run and had no processor, imports included.
        is_sampled: whether time between operators was sampled; otherwise it is unknown.
    """

    whole_ns: int
    causes: tuple[tuple[Cause, int], ...]
    lines: tuple[Place, ...]
    imports: tuple[Place, ...]
    others: tuple[Place, ...]
    gpu: GpuAccount | None
    ready_ns: int
    is_sampled: bool

    @property
    def work_ns(self) -> int:
        """The elapsed time without imports: the whole of `lines`, with what is unknown."""
        return self.whole_ns - self.of(Cause.IMPORTING)

    def of(self, *causes: Cause) -> int:
        """Return the time of these causes, in ns."""
        return sum(value for cause, value in self.causes if cause in causes)


def account(profile: Profile) -> Account:
    """Return where the elapsed time of a profile went; computed once."""
    return profile.once("account", lambda: _account(profile))


def _account(profile: Profile) -> Account:
    lines = UserLines.of(profile)
    main = time_between_operators.on_main_threads(profile)
    divided = _divide(profile, main)
    known = sum(int(values.sum()) for values in divided.values.values())
    whole = max(profile.run.wall_ns, known)
    parts = {cause: int(values.sum()) for cause, values in divided.values.items()}
    parts[Cause.UNKNOWN] = whole - known
    gpu_ns = _by_line(lines, exclusive_or_zeros(profile, GPU_TIME_NS.name))
    return Account(
        whole_ns=whole,
        causes=_ordered(parts),
        lines=_places(profile, lines, divided, set(Cause) - {Cause.IMPORTING}, gpu_ns),
        imports=_places(profile, lines, divided, {Cause.IMPORTING}),
        others=_places(profile, lines, _divide(profile, ~main), set(_OF_OTHERS)),
        gpu=_gpu(profile, lines),
        ready_ns=sum(
            int(exclusive_or_zeros(profile, metric.name)[main].sum())
            for metric in (SAMPLED_READY_TIME_NS, OPERATOR_READY_TIME_NS)
        ),
        is_sampled=time_between_operators.is_sampled(profile),
    )


def waits_for_device(profile: Profile) -> Ints:
    """Return the time in which main threads waited for a device, by node, ns, shape (nodes,)."""
    division = _divide(profile, time_between_operators.on_main_threads(profile))
    waits = np.zeros(len(profile.tree), np.int64)
    if Cause.DEVICE in division.values:
        waits[division.nodes] = division.values[Cause.DEVICE]
    return waits


def in_programs(profile: Profile) -> Mask:
    """Return the nodes in calls of JAX's compiled programs, shape (nodes,)."""
    return _below(profile, lambda name: name.startswith(_PROGRAMS))


class _Division:
    """Exclusive time of some nodes, moved part by part to its causes.

    Attributes:
        nodes: their ids, ascending, shape (some nodes,).
        left: ns that have no cause yet, by kind; arrays of the same shape.
        values: ns by cause; arrays of the same shape.
    """

    def __init__(self, profile: Profile, within: Mask) -> None:
        kinds = {
            "operators": elapsed.in_operators(profile.frames, profile.tree, profile.metrics),
            "running": exclusive_or_zeros(profile, SAMPLED_CPU_TIME_NS.name),
            "waiting": exclusive_or_zeros(profile, SAMPLED_WAIT_TIME_NS.name),
            "traced": exclusive_or_zeros(profile, TRACED_TIME_NS.name),
        }
        self.nodes = np.flatnonzero(within & np.any([each > 0 for each in kinds.values()], axis=0))
        self.left = {kind: values[self.nodes] for kind, values in kinds.items()}
        self.values: dict[Cause, Ints] = {}

    def where(self, cause: Cause, mask: Mask, kinds: tuple[str, ...] = _KINDS) -> None:
        """Move what is left of these kinds at the nodes in `mask`, shape (nodes of the tree,)."""
        chosen = mask[self.nodes]
        for kind in kinds:
            self._move(cause, kind, np.where(chosen, self.left[kind], 0))

    def up_to(self, cause: Cause, values: Ints, kinds: tuple[str, ...]) -> None:
        """Move at most `values` of each node, ns, shape (nodes of the tree,), from kind after kind."""
        values = values[self.nodes]
        for kind in kinds:
            part = np.minimum(values, self.left[kind])
            self._move(cause, kind, part)
            values = values - part

    def _move(self, cause: Cause, kind: str, part: Ints) -> None:
        if part.any():
            self.left[kind] = self.left[kind] - part
            self.values[cause] = self.values.get(cause, 0) + part


def _divide(profile: Profile, within: Mask) -> _Division:
    """Divide the time of the nodes in `within`, shape (nodes,), by cause."""
    tree, everywhere = profile.tree, np.ones(len(profile.tree), np.bool_)
    division = _Division(profile, within)
    if not len(division.nodes):
        return division
    _drop_waits_for_backward(profile, division)

    def measured(cause: Cause, metric: str, *kinds: str) -> None:
        division.up_to(cause, exclusive_or_zeros(profile, metric), kinds)

    division.where(Cause.COMPILING, compiling(profile))
    division.up_to(Cause.COMPILING, compiling_in_operators(profile), ("operators",))
    division.where(Cause.IMPORTING, importing(profile))
    measured(Cause.PROCESSOR, SAMPLED_READY_TIME_NS.name, "waiting")
    measured(Cause.PROCESSOR, OPERATOR_READY_TIME_NS.name, "operators")
    division.where(Cause.DEVICE, _below(profile, lambda name: name in _DEVICE_WAITS))
    division.up_to(
        Cause.DEVICE, _device_waits(profile), ("waiting", "running", "traced", "operators")
    )
    peers = _below(profile, lambda name: name in _PEER_WAITS or name.startswith(_COLLECTIVE))
    division.where(Cause.COLLECTIVES, peers)
    division.where(Cause.COLLECTIVES, _at_innermost(profile, "", _DISTRIBUTED), ("waiting",))
    division.where(Cause.PROGRAMS, in_programs(profile), ("operators",))
    for phase, cause in _OF_PHASE.items():
        division.where(cause, tree.phase == phase, ("operators",))
    division.where(Cause.OPERATORS, everywhere, ("operators",))
    measured(Cause.GARBAGE, GC_TIME_NS.name, "running")
    measured(Cause.PYTHON, SAMPLED_GIL_TIME_NS.name, "running")
    # Without the GIL, or found running by no sample.
    division.where(Cause.NATIVE, everywhere, ("running",))
    measured(Cause.GIL, SAMPLED_GIL_WAIT_TIME_NS.name, "waiting")
    kinds = kinds_of_waits(profile)
    loaders = [number for number, wait in enumerate(WAITS) if wait.role is Role.LOADER]
    division.where(Cause.DATA, tree.at_or_below(np.isin(kinds, loaders)), ("waiting",))
    division.where(Cause.PROCESS, tree.at_or_below(kinds >= 0), ("waiting",))
    measured(Cause.COLLECTIVES, SAMPLED_COLLECTIVE_WAIT_TIME_NS.name, "waiting")
    for cause, metric in _OF_CALL:
        measured(cause, metric.name, "waiting")
    division.where(Cause.WAITING, everywhere, ("waiting",))
    division.where(Cause.OUTSIDE, everywhere, ("traced",))
    return division


def _below(profile: Profile, is_meant: Callable[[str], bool]) -> Mask:
    """Return the nodes at or below frames with such a name, shape (nodes,)."""
    frames = profile.frames
    names = np.array([is_meant(text) for text in frames.strings], np.bool_)
    is_frame = names[frames.name] & (frames.kind != FrameKind.PYTHON)
    return np.asarray(profile.tree.at_or_below(is_frame[profile.tree.frame]))


def _device_waits(profile: Profile) -> Ints:
    """Return how long the host waited in calls of the GPU's interface, at the caller, shape (nodes,)."""
    waits = exclusive_or_zeros(profile, _SYNC_WAIT)
    at = np.flatnonzero(waits)
    caller = profile.tree.nearest(~profile.is_kind(FrameKind.GPU_API))[at]
    return sums(caller, waits[at], len(waits))


def _drop_waits_for_backward(profile: Profile, division: _Division) -> None:
    """Drop waits for a backward pass on other threads, because its operators are counted.

    They stand on the paths of their forward operators, so below the main thread. No more is dropped than
    was counted twice: more than the elapsed time.
    """
    over = sum(int(each.sum()) for each in division.left.values()) - profile.run.wall_ns
    is_call = _at_innermost(profile, _RUN_BACKWARD, _AUTOGRAD)
    waits = np.where(is_call[division.nodes], division.left["waiting"], 0)
    total = int(waits.sum())
    if over > 0 and total > 0:
        dropped = (waits * min(1.0, over / total)).astype(np.int64)
        division.left["waiting"] = division.left["waiting"] - dropped


def _at_innermost(profile: Profile, names: Container[str], file: str) -> Mask:
    """Return the nodes whose innermost Python frame is one of these functions of a file, shape (nodes,).

    Args:
        profile: the profile.
        names: names of functions; "" for all.
        file: a part of the path.
    """
    nearest = profile.tree.nearest(profile.is_kind(FrameKind.PYTHON))
    frames = profile.frames
    files = np.array([file in text for text in frames.strings], np.bool_)
    meant = files[frames.file]
    if names != "":
        meant &= np.array([text in names for text in frames.strings], np.bool_)[frames.name]
    return np.asarray((nearest != NO_NODE) & meant[profile.tree.frame[nearest]])


def _places(
    profile: Profile,
    lines: UserLines,
    division: _Division,
    causes: set[Cause],
    gpu_ns: Ints | None = None,
) -> tuple[Place, ...]:
    """Return the time of some causes by line, longest first, and last what has no line.

    Args:
        profile: the profile.
        lines: its lines.
        division: the time to group.
        causes: the causes to include.
        gpu_ns: GPU time by line, and last without a line, shape (lines + 1,).
    """
    count = len(lines.frame) + 1
    line = lines.of_node[division.nodes]
    line = np.where(line == NO_GROUP, count - 1, line)
    table = {
        cause: sums(line, values, count)
        for cause, values in division.values.items()
        if cause in causes
    }
    total = sum(table.values(), np.zeros(count, np.int64))
    if gpu_ns is None:
        gpu_ns = np.zeros(count, np.int64)
    order = np.lexsort((-gpu_ns, -total))
    order = order[(total + gpu_ns)[order] > 0]
    columns = [(cause, table[cause].tolist()) for cause in Cause if cause in table]
    found, natives = [], callees(profile)
    for index in (*order[order < count - 1].tolist(), *order[order == count - 1].tolist()):
        frame = None if index == count - 1 else profile.frames[int(lines.frame[index])]
        parts = tuple((cause, column[index]) for cause, column in columns if column[index] > 0)
        inside = natives.get(index, ())[:_MOST_CALLEES]
        found.append(Place(frame, int(total[index]), parts, int(gpu_ns[index]), inside))
    return tuple(found)


def _by_line(lines: UserLines, values: Ints) -> Ints:
    """Return sums by line, and last that of nodes without a line, shape (lines + 1,)."""
    return np.append(lines.sums(values), values[lines.of_node == NO_GROUP].sum())


def _ordered(parts: dict[Cause, int]) -> tuple[tuple[Cause, int], ...]:
    return tuple((cause, parts[cause]) for cause in Cause if parts.get(cause, 0) > 0)


def _gpu(profile: Profile, lines: UserLines) -> GpuAccount | None:
    busy = exclusive_or_zeros(profile, GPU_TIME_NS.name)
    if not busy.any():
        return None
    idle = exclusive_or_zeros(profile, _IDLE)
    by_line = lines.sums(idle)
    order = np.argsort(-by_line, kind="stable")
    return GpuAccount(
        busy_ns=int(busy.sum()),
        copy_ns=int(busy[profile.is_kind(FrameKind.COPY)].sum()),
        idle_ns=int(idle.sum()),
        gap_ns=int(exclusive_or_zeros(profile, _GAP).sum()),
        is_idle_known=_IDLE in profile.metrics,
        late=tuple(
            (profile.frames[int(lines.frame[index])], int(by_line[index]))
            for index in order[by_line[order] > 0].tolist()
        ),
    )
