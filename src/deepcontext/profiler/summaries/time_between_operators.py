"""Where threads spend their time: in operators, between them, running or waiting.

Reads the metrics of the operator collectors and of the CPU sampler; formats nothing.
Invariant: for a thread that was sampled throughout, the times in operators, running and waiting add
up to the thread's lifetime.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from deepcontext.profiler.format.frame import MAIN_THREAD, FrameKind
from deepcontext.profiler.format.metric import (
    SAMPLED_CPU_TIME_NS,
    SAMPLED_GIL_TIME_NS,
    SAMPLED_GIL_WAIT_TIME_NS,
    SAMPLED_READY_TIME_NS,
    SAMPLED_WAIT_TIME_NS,
)
from deepcontext.profiler.model import elapsed
from deepcontext.profiler.model.metric_values import exclusive_or_zeros
from deepcontext.profiler.model.place import Place
from deepcontext.profiler.summaries.lines import UserLines

if TYPE_CHECKING:
    import numpy.typing as npt

    from deepcontext.profiler.model.profile_model import ProfileModel as Profile

    Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class SampledTime:
    """Time outside operators, in ns.

    Attributes:
        cpu_ns: time on a processor.
        gil_ns: part of `cpu_ns` with the GIL held: Python, or native code that keeps the GIL.
        wait_ns: time not on a processor.
        ready_ns: part of `wait_ns` in which the thread could run but other threads had the
            processors.
        gil_wait_ns: part of `wait_ns` spent waiting for the GIL.
    """

    cpu_ns: int
    gil_ns: int
    wait_ns: int
    ready_ns: int
    gil_wait_ns: int

    @property
    def total_ns(self) -> int:
        """Elapsed time, in ns."""
        return self.cpu_ns + self.wait_ns


@dataclass(frozen=True, slots=True)
class ThreadTime:
    """Time of one thread, or of all threads with one name.

    Attributes:
        name: name of the thread.
        operator_ns: elapsed time inside operators on the thread's call paths; a backward
            operator belongs to the thread of its forward operator.
        sampled: time outside operators.
    """

    name: str
    operator_ns: int
    sampled: SampledTime


@dataclass(frozen=True, slots=True)
class LineTime(Place):
    """Time outside operators at one line of the user's code, including what the line calls.

    Attributes:
        sampled: time without deeper lines of the user's code.
    """

    sampled: SampledTime


def is_sampled(profile: Profile) -> bool:
    """Say whether the profile has samples of time between operators."""
    return elapsed.is_sampled(profile.metrics)


def by_thread(profile: Profile) -> tuple[ThreadTime, ...]:
    """Return one row per thread: main threads first, then by time running and in operators."""
    tree = profile.tree
    metrics = _Sampled.of(profile)
    operator = elapsed.in_operators(profile.frames, tree, profile.metrics)
    rows = []
    for node in threads(profile):
        inside = slice(node, int(tree.subtree_end[node]))
        total = int(operator[inside].sum())
        rows.append(ThreadTime(profile.frame(node).name, total, metrics.total(inside)))
    return tuple(
        sorted(
            rows,
            key=lambda row: (
                not row.name.endswith(MAIN_THREAD),
                -row.sampled.cpu_ns - row.operator_ns,
            ),
        )
    )


def threads(profile: Profile) -> tuple[int, ...]:
    """Return the nodes of threads, in the order of the tree."""
    return tuple(np.flatnonzero(profile.is_kind(FrameKind.THREAD)).tolist())


def on_main_threads(profile: Profile) -> npt.NDArray[np.bool_]:
    """Return for each node whether it is at or below a main thread, shape (nodes,), bool.

    All nodes of a profile that knows no threads.
    """
    mask = np.full(len(profile.tree), not threads(profile), np.bool_)
    for node in threads(profile):
        if profile.frame(node).name == MAIN_THREAD:
            mask[node : int(profile.tree.subtree_end[node])] = True
    return mask


def on_main(profile: Profile) -> SampledTime:
    """Return the main thread's time outside operators, from its first line of Python on."""
    inside = on_main_threads(profile) & ~profile.is_kind(FrameKind.THREAD)
    return SampledTime(*(int(column[inside].sum()) for column in _Sampled.of(profile).columns))


def by_line(profile: Profile, limit: int = 0) -> tuple[tuple[LineTime, ...], int]:
    """Return the time outside operators by line, and the number of such lines.

    A line's time is its running time on any thread plus its waiting time on the main thread, because
    other threads wait by design most of the time. Largest first; `limit` 0 returns all.
    """
    metrics = _Sampled.of(profile)
    lines, on_main = UserLines.of(profile), on_main_threads(profile)
    columns = [
        lines.sums(values, within)
        for values, within in zip(
            metrics.columns, (None, None, on_main, on_main, on_main), strict=True
        )
    ]
    order = lines.largest(columns[0] + columns[2])
    rows = []
    for index in order[: limit or None].tolist():
        time = SampledTime(*(int(column[index]) for column in columns))
        rows.append(LineTime.at(lines.frame_of(profile, index), time))
    return tuple(rows), len(order)


@dataclass(frozen=True, slots=True)
class _Sampled:
    """Exclusive values of each field of `SampledTime`, each of shape (nodes,)."""

    columns: tuple[Ints, ...]

    @classmethod
    def of(cls, profile: Profile) -> _Sampled:
        order = (
            SAMPLED_CPU_TIME_NS,
            SAMPLED_GIL_TIME_NS,
            SAMPLED_WAIT_TIME_NS,
            SAMPLED_READY_TIME_NS,
            SAMPLED_GIL_WAIT_TIME_NS,
        )
        return cls(tuple(exclusive_or_zeros(profile, metric.name) for metric in order))

    def total(self, nodes: slice) -> SampledTime:
        return SampledTime(*(int(column[nodes].sum()) for column in self.columns))
