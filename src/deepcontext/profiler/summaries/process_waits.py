"""How long processes of a job wait for each other's queues, pipes and results, and what the others did.

Counts samples of main threads. A profile has no order in time, so the work of a process is that of
its whole run, without its own waiting. Does not know which of several processes a queue belongs to.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from deepcontext.profiler.format.frame import MAIN_THREAD, FrameKind
from deepcontext.profiler.format.metric import SAMPLED_WAIT_TIME_NS
from deepcontext.profiler.model.elapsed import ELAPSED_TIME_NS
from deepcontext.profiler.model.metric_values import exclusive_or_zeros
from deepcontext.profiler.summaries.lines import by_nearest
from deepcontext.profiler.summaries.roles import Role

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from deepcontext.profiler.format.frame import Frame
    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.model.profile_model import ProfileModel
    from deepcontext.profiler.summaries.processes import Process

    Mask = npt.NDArray[np.bool_]

_MOST_LINES: Final = 3
_CHILD_STARTS: Final = "BaseProcess._bootstrap"


class _Wait(NamedTuple):
    """Functions in which a thread waits for a process, of one role where `role` is not None.

    Attributes:
        role: role of the process.
        file: a part of the path.
        names: without the class.
        helper: a function that a thread runs for a pool of processes, and a part of its path. A process
            without it waits for its own threads.
    """

    role: Role | None
    file: str
    names: tuple[str, ...]
    helper: tuple[str, str] | None = None


# The outermost of these functions decides: a DataLoader reads a queue, and a queue reads a connection.
WAITS: Final = (
    _Wait(Role.LOADER, "torch/utils/data/dataloader.py", ("_try_get_data",)),
    _Wait(
        Role.POOL,
        "multiprocessing/pool.py",
        ("get", "wait", "next", "__next__"),
        ("recv", "multiprocessing/connection.py"),
    ),
    _Wait(
        Role.POOL,
        "concurrent/futures/",
        ("result", "exception", "wait", "as_completed", "result_iterator"),
        ("wait_result_broken_or_wakeup", "process"),  # the standard library's executor, and loky's
    ),
    _Wait(None, "multiprocessing/queues.py", ("get",)),
    _Wait(
        None,
        "multiprocessing/connection.py",
        ("recv", "recv_bytes", "recv_bytes_into", "poll", "wait", "_recv_bytes", "_poll", "_recv"),
    ),
)


@dataclass(frozen=True, slots=True, eq=False)
class ProcessWait:
    """Processes that wait for others.

    Attributes:
        waiters: processes that wait: one process, or similar children of one process.
        others: recorded processes that `waiters` may wait for: similar children, or the parent.
        wait_ns: elapsed time in which the main threads of `waiters` waited, the sum over them.
        places: lines of the user's code that wait, most waiting first.
        other_ns: elapsed time of the main threads of `others` without their own waiting.
        lines: where the others spent that time, by line of the user's code, most first.
    """

    waiters: tuple[Process, ...]
    others: tuple[Process, ...]
    wait_ns: int
    places: tuple[Frame, ...]
    other_ns: int
    lines: tuple[tuple[Frame, int], ...]

    @property
    def share(self) -> float:
        """Return the part of the elapsed time of `waiters` in which they waited, 0 to 1."""
        return self.wait_ns / (sum(each.profile.run.wall_ns for each in self.waiters) or 1)


def process_waits(processes: Sequence[Process]) -> list[ProcessWait]:
    """Return which processes wait for which others, the longest waiting first."""
    looked = {id(each): _Looked.at(each.profile) for each in processes}
    found = []
    for waiters, kind, others in _pairs(processes, looked):
        waits: Counter[Frame] = Counter()
        for each in waiters:
            waits.update(looked[id(each)].waits[kind])
        did: Counter[Frame] = Counter()
        for each in others:
            did.update(looked[id(each)].lines)
        wait_ns = sum(looked[id(each)].wait_ns[kind] for each in waiters)
        if wait_ns:
            found.append(
                ProcessWait(
                    waiters=waiters,
                    others=others,
                    wait_ns=wait_ns,
                    places=tuple(frame for frame, _ in waits.most_common(_MOST_LINES)),
                    other_ns=sum(looked[id(each)].working_ns for each in others),
                    lines=tuple(did.most_common(_MOST_LINES)),
                )
            )
    return sorted(found, key=lambda each: -each.wait_ns)


def _pairs(
    processes: Sequence[Process], looked: dict[int, _Looked]
) -> Iterator[tuple[tuple[Process, ...], Role | None, tuple[Process, ...]]]:
    """Yield the processes that wait, in functions for which role, and the processes waited for."""
    for each in processes:
        children = [child for child in processes if _is_child(child, each)]
        by_role: dict[Role, list[Process]] = {}
        for child in children:
            by_role.setdefault(child.role, []).append(child)
        for role in (Role.LOADER, Role.POOL):
            if role in by_role:
                yield (each,), role, tuple(by_role[role])
        special = {Role.LOADER, Role.POOL}
        rest = [child for child in children if child.role not in special] or by_role.get(Role.POOL)
        if rest:
            yield (each,), None, tuple(rest)
        for siblings in by_role.values():
            idle = [
                child
                for child in siblings
                if looked[id(child)].is_child_of_multiprocessing
                and not any(_is_child(other, child) for other in processes)
            ]
            if idle:
                yield tuple(idle), None, (each,)


def _is_child(process: Process, parent: Process) -> bool:
    run, above = process.profile.run, parent.profile.run
    return (
        process is not parent
        and (run.hostname, run.parent_pid) == (above.hostname, above.pid)
        and above.start_unix_ns <= run.start_unix_ns
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Looked:
    """What the main thread of one process did.

    Attributes:
        wait_ns: time in functions that wait, by role.
        waits: the same by line of the user's code.
        working_ns: elapsed time outside such functions.
        lines: the same by line of the user's code.
        is_child_of_multiprocessing: whether `multiprocessing` started the process.
    """

    wait_ns: Counter[Role | None]
    waits: dict[Role | None, Counter[Frame]]
    working_ns: int
    lines: Counter[Frame]
    is_child_of_multiprocessing: bool

    @classmethod
    def at(cls, profile: Profile) -> _Looked:
        """Collect the waits of one profile."""
        tree = profile.tree
        frames = list(profile.frames)
        kinds = kinds_of_waits(profile)
        starts = _nodes(profile, [frame.name == _CHILD_STARTS for frame in frames])
        inside = _nodes(
            profile,
            [frame.kind is FrameKind.THREAD and frame.name == MAIN_THREAD for frame in frames],
        )
        inside = tree.at_or_below(inside)
        if starts.any():  # a forked child has frames of its parent above
            inside &= tree.at_or_below(starts)
        user = profile.is_user_code()[tree.frame] & inside
        waited = exclusive_or_zeros(profile, SAMPLED_WAIT_TIME_NS.name)
        is_wait = (kinds >= 0) & inside
        outermost = is_wait & ~tree.below(is_wait)
        wait_ns: Counter[Role | None] = Counter()
        waits: dict[Role | None, Counter[Frame]] = {role: Counter() for role in _roles()}
        for number, wait in enumerate(WAITS):
            values = np.where(tree.at_or_below(outermost & (kinds == number)), waited, 0)
            wait_ns[wait.role] += int(values.sum())
            waits[wait.role].update(by_nearest(profile, values, user))
        elapsed = exclusive_or_zeros(profile, ELAPSED_TIME_NS.name)
        working = np.where(inside & ~tree.at_or_below(outermost), elapsed, 0)
        return cls(
            wait_ns,
            waits,
            int(working.sum()),
            by_nearest(profile, working, user),
            bool(profile.run.process_name),
        )


def _roles() -> set[Role | None]:
    return {wait.role for wait in WAITS}


def kinds_of_waits(profile: ProfileModel) -> npt.NDArray[np.int64]:
    """Return for each node the number of the functions in `WAITS` that its frame is one of, or -1."""
    frames = profile.frames
    is_python = frames.kind == FrameKind.PYTHON
    texts = {
        file: frames.strings[int(file)].replace("\\", "/")
        for file in np.unique(frames.file[is_python]).tolist()
    }
    # Few frames are of these files: of a large profile, only their names are read.
    meant = {wait.file for wait in WAITS} | {wait.helper[1] for wait in WAITS if wait.helper}
    named = [file for file, text in texts.items() if any(each in text for each in meant)]
    is_meant = is_python & np.isin(frames.file, named)
    functions = [
        (frames.strings[int(name)].rpartition(".")[2], texts[file])
        for name, file in zip(
            frames.name[is_meant].tolist(), frames.file[is_meant].tolist(), strict=True
        )
    ]
    waits = [
        (number, wait)
        for number, wait in enumerate(WAITS)
        if not wait.helper or any(_is(each, *wait.helper) for each in functions)
    ]
    kinds = np.full(len(frames), -1, np.int64)
    kinds[is_meant] = [
        next((n for n, wait in waits if wait.file in file and name in wait.names), -1)
        for name, file in functions
    ]
    return kinds[profile.tree.frame]


def _is(function: tuple[str, str], name: str, file: str) -> bool:
    return function[0] == name and file in function[1]


def _nodes(profile: Profile, is_frame: Sequence[bool]) -> Mask:
    return np.array(is_frame, np.bool_)[profile.tree.frame]
