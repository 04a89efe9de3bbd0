"""How long the workers of a DataLoader take to make a batch, where, and how long the loop waits for it.

Joins the profiles of the workers with the profile of the process that started them. The time of a
batch that was made but never used counts as time of the other batches.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.format.metric import (
    CALL_DURATION_NS,
    SAMPLED_CPU_TIME_NS,
    SAMPLED_GIL_TIME_NS,
    SAMPLED_READY_TIME_NS,
    SAMPLED_WAIT_TIME_NS,
)
from deepcontext.profiler.model.elapsed import ELAPSED_TIME_NS, in_operators
from deepcontext.profiler.model.metric_values import counts_or_zeros, exclusive_or_zeros
from deepcontext.profiler.model.tree import NO_NODE
from deepcontext.profiler.summaries.lines import by_nearest
from deepcontext.profiler.summaries.roles import Role

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from deepcontext.profiler.format.frame import Frame
    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.summaries.processes import Process

    Mask = npt.NDArray[np.bool_]

_ITERATOR: Final = "_MultiProcessingDataLoaderIter"
_NEXT: Final = f"enumerate(DataLoader)#{_ITERATOR}"
_NEXT_INDEX: Final = "_BaseDataLoaderIter._next_index"
_FETCH: Final = "DatasetFetcher.fetch"
# Functions of a dataset; what else the loader calls joins its samples.
_OF_DATASET: Final = frozenset({"__getitem__", "__getitems__", "__iter__", "__next__"})
_JOINS: Final = frozenset({"aten::stack", "aten::cat"})
_LOADER_FOLDER: Final = "torch/utils/data/"
_MOST_LINES: Final = 5


@dataclass(frozen=True, slots=True)
class LoaderTime:
    """The loop that waits for batches, and the workers that make the batches.

    Attributes:
        pid: the process of the loop.
        loops: lines of the user's code that wait for batches, most waiting first.
        worker_count: processes that made batches.
        at_once: workers that ran at the same time, at least 1.
        batch_count: batches that the loops took.
        making_ns: elapsed time in which the workers made batches, the sum over the workers.
        wait_ns: elapsed time in which the loops waited.
        lines: where the workers were while making batches, and the elapsed time, most first; lines of
            the user's code, otherwise the line where the loader calls a library.
        waiting_ns: the part of `making_ns` in which the workers slept, for a disk, a network or a lock.
        joining: lines of the user's `collate_fn`, and the elapsed time of each with its calls, most first.
        in_operators: the part of `lines` in operators of the framework, most first.
        in_libraries: the part of `lines` between operators without Python's lock, most first.
        copying_ns: the part of `making_ns` in operators that copy samples into batches.
        making_ready_ns: the part of `making_ns` in which a worker could run and had no processor.
        ready_ns: the same of all threads of the workers, whatever they did.
        loop_ready_ns: the part of `wait_ns` in which the loop could run and had no processor.
        loop_running_ns: the part of `wait_ns` in which the loop ran, to take the batches over.
        running_ns: time in which the threads of the workers ran between operators.
    """

    pid: int
    loops: tuple[Frame, ...]
    worker_count: int
    at_once: int
    batch_count: int
    making_ns: int
    wait_ns: int
    lines: tuple[tuple[Frame, int], ...]
    waiting_ns: int = 0
    joining: tuple[tuple[Frame, int], ...] = ()
    in_operators: tuple[tuple[Frame, int], ...] = ()
    in_libraries: tuple[tuple[Frame, int], ...] = ()
    copying_ns: int = 0
    making_ready_ns: int = 0
    ready_ns: int = 0
    loop_ready_ns: int = 0
    loop_running_ns: int = 0
    running_ns: int = 0

    @property
    def batch_ns(self) -> int:
        """Return the mean time that one worker takes for a batch."""
        return self.making_ns // self.batch_count

    @property
    def wait_for_batch_ns(self) -> int:
        """Return the mean time that the loop waits for a batch."""
        return self.wait_ns // self.batch_count


def loader_times(processes: Sequence[Process]) -> list[LoaderTime]:
    """Return a row for each process whose DataLoader workers have profiles, most waiting first."""
    by_parent: dict[tuple[str, int], list[Profile]] = {}
    for each in processes:
        if each.role is Role.LOADER:
            run = each.profile.run
            by_parent.setdefault((run.hostname, run.parent_pid), []).append(each.profile)
    found = [
        _loader_time(each.profile, workers)
        for each in processes
        if (workers := by_parent.get((each.profile.run.hostname, each.profile.run.pid)))
    ]
    known = [each for each in found if each is not None]
    return sorted(known, key=lambda each: -each.wait_ns)


def _loader_time(parent: Profile, workers: Sequence[Profile]) -> LoaderTime | None:
    waits = _nodes(parent, lambda frame: frame.kind is FrameKind.SCOPE and _NEXT in frame.name)
    calls = int(counts_or_zeros(parent, CALL_DURATION_NS.name)[waits].sum())
    iterators = iterators_with_workers(parent)
    # The last call of an epoch ends the loop.
    batches = calls - iterators
    if batches <= 0:
        return None
    elapsed = exclusive_or_zeros(parent, ELAPSED_TIME_NS.name)
    waiting = np.where(parent.tree.at_or_below(waits), elapsed, 0)
    loops = by_nearest(parent, waiting, parent.is_user_code()[parent.tree.frame])
    lines: Counter[Frame] = Counter()
    joining: Counter[Frame] = Counter()
    operators: Counter[Frame] = Counter()
    unlocked: Counter[Frame] = Counter()
    for worker in workers:
        lines.update(_making(worker, exclusive_or_zeros(worker, ELAPSED_TIME_NS.name)))
        operators.update(_making(worker, in_operators(worker.frames, worker.tree, worker.metrics)))
        unlocked.update(_making(worker, _without_lock(worker)))
        joining.update(_joining(worker))
    return LoaderTime(
        pid=parent.run.pid,
        loops=tuple(frame for frame, _ in loops.most_common(_MOST_LINES)),
        worker_count=len(workers),
        at_once=max(1, round(len(workers) / max(iterators, 1))),
        batch_count=batches,
        making_ns=lines.total(),
        wait_ns=int(waiting.sum()),
        lines=tuple(lines.most_common(_MOST_LINES)),
        waiting_ns=sum(_waiting_ns(worker) for worker in workers),
        joining=tuple(joining.most_common(_MOST_LINES)),
        in_operators=tuple(operators.most_common(_MOST_LINES)),
        in_libraries=tuple(unlocked.most_common(_MOST_LINES)),
        copying_ns=sum(_copying_ns(worker) for worker in workers),
        making_ready_ns=sum(_ready_ns(worker) for worker in workers),
        ready_ns=sum(_sampled_ns(each, SAMPLED_READY_TIME_NS.name) for each in workers),
        loop_ready_ns=_sampled_ns(parent, SAMPLED_READY_TIME_NS.name, waits),
        loop_running_ns=_sampled_ns(parent, SAMPLED_CPU_TIME_NS.name, waits),
        running_ns=sum(_sampled_ns(each, SAMPLED_CPU_TIME_NS.name) for each in workers),
    )


def iterators_with_workers(parent: Profile) -> int:
    """Return how many iterators with workers were made: each calls `random_` once, for its seed."""
    made = _nodes(parent, lambda frame: frame.name == f"{_ITERATOR}.__init__")
    draws = _nodes(parent, lambda frame: frame.name == "aten::random_")
    # The first indices are drawn there, too, and a sampler that shuffles has a seed of its own.
    asked = _nodes(parent, lambda frame: frame.name == _NEXT_INDEX)
    seeds = draws & parent.tree.below(made) & ~parent.tree.below(asked)
    return int(counts_or_zeros(parent, CALL_DURATION_NS.name)[seeds].sum())


def _sampled_ns(profile: Profile, metric: str, places: Mask | None = None) -> int:
    """Return the sum of a sampled time, of all nodes or at and below `places`, ns."""
    values = exclusive_or_zeros(profile, metric)
    return int(values.sum() if places is None else values[profile.tree.at_or_below(places)].sum())


def _making(worker: Profile, time: npt.NDArray[np.int64]) -> Counter[Frame]:
    """Return a time of a worker while it made batches, by line."""
    tree = worker.tree
    fetch = _nodes(worker, lambda frame: frame.name.endswith(_FETCH))
    inside = tree.at_or_below(fetch)
    values = np.where(inside, time, 0)
    # A forked worker has lines of its parent above.
    user = worker.is_user_code()[tree.frame] & inside
    library = inside & _nodes(
        worker, lambda frame: frame.kind is FrameKind.PYTHON and _LOADER_FOLDER not in frame.file
    )
    entry = library & ~tree.below(library)
    found = by_nearest(worker, values, user)
    rest = np.where(tree.nearest(user) == NO_NODE, values, 0)
    found.update(by_nearest(worker, rest, entry))
    rest = np.where(tree.nearest(user | entry) == NO_NODE, values, 0)
    found.update(by_nearest(worker, rest, fetch))
    return found


def _joining(worker: Profile) -> Counter[Frame]:
    """Return the elapsed time in which a worker joined samples, by line of the user's function."""
    tree = worker.tree
    inside = tree.below(_nodes(worker, lambda frame: frame.name.endswith(_FETCH)))
    user = worker.is_user_code()[tree.frame] & inside
    called = user & ~tree.below(user)
    joins = called & _nodes(worker, lambda frame: frame.name.rpartition(".")[2] not in _OF_DATASET)
    return by_nearest(worker, exclusive_or_zeros(worker, ELAPSED_TIME_NS.name), joins)


def _without_lock(worker: Profile) -> npt.NDArray[np.int64]:
    """Return the time of each node between operators without Python's lock, ns.

    A thread that has no processor counts by what it does when it has one.
    """
    running, locked, ready = (
        exclusive_or_zeros(worker, each.name)
        for each in (SAMPLED_CPU_TIME_NS, SAMPLED_GIL_TIME_NS, SAMPLED_READY_TIME_NS)
    )
    unlocked = np.maximum(running - locked, 0)
    return np.asarray((running + ready) * (unlocked / np.maximum(running, 1)), np.int64)


def _copying_ns(worker: Profile) -> int:
    """Return the time in which a worker copied samples into batches, ns."""
    fetch = _nodes(worker, lambda frame: frame.name.endswith(_FETCH))
    copies = _nodes(worker, lambda frame: frame.name in _JOINS) & worker.tree.below(fetch)
    elapsed = exclusive_or_zeros(worker, ELAPSED_TIME_NS.name)
    return int(elapsed[worker.tree.at_or_below(copies)].sum())


def _ready_ns(worker: Profile) -> int:
    """Return the time in which a worker lacked a processor while it made batches, ns."""
    fetch = _nodes(worker, lambda frame: frame.name.endswith(_FETCH))
    return _sampled_ns(worker, SAMPLED_READY_TIME_NS.name, fetch)


def _waiting_ns(worker: Profile) -> int:
    """Return the time in which a worker slept while it made batches, ns."""
    fetch = _nodes(worker, lambda frame: frame.name.endswith(_FETCH))
    # A thread that other processes keep from a processor does not sleep.
    return _sampled_ns(worker, SAMPLED_WAIT_TIME_NS.name, fetch) - _ready_ns(worker)


def _nodes(profile: Profile, accepts: Callable[[Frame], bool]) -> Mask:
    """Return which nodes have an accepted frame, shape (nodes,), bool."""
    return np.array([accepts(frame) for frame in profile.frames], np.bool_)[profile.tree.frame]
