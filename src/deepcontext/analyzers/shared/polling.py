"""Threads that ask again and again whether there is work, and use a processor for it.

A thread that waits for a queue, an event or a future uses no processor; one that asks without waiting uses
all of it, and holds Python's lock that the other threads need. Does not judge work between operators
(`host_work.py`). Needs samples. Invariant: only processor time counts, so a thread that sleeps between two
questions is no finding. `Queue.get(block=False)` is not seen, because a consumer of many small things spends
as much time in `Queue.get`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.finding import Finding, Gain, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.format.metric import SAMPLED_CPU_TIME_NS
from deepcontext.profiler.model.metric_values import exclusive_or_zeros, total
from deepcontext.profiler.model.query import Query
from deepcontext.profiler.model.tree import NO_NODE

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

_CPU: Final = SAMPLED_CPU_TIME_NS.name
_LEAST_SHARE: Final = 0.15
# Fewer than fifty samples at the usual rate may be the sum of many short waits.
_LEAST_NS: Final = 500_000_000
# Of the processor time of the asking function: the lines that ask, and the questions alone.
_LEAST_ASKING: Final = 0.5
_LEAST_QUESTIONS: Final = 0.1
# Functions of the standard library that answer at once, by the end of the file's path. `Event.wait` and
# `poll` use a processor only with a timeout of nearly nothing.
_QUEUE: Final = frozenset(
    f"Queue.{name}" for name in ("get_nowait", "empty", "qsize", "full", "put_nowait")
)
_ASKING: Final = {
    "/queue.py": _QUEUE,
    "/asyncio/queues.py": _QUEUE,
    "/multiprocessing/queues.py": frozenset({"Queue.get_nowait", "Queue.empty", "Queue.qsize"}),
    "/multiprocessing/connection.py": frozenset({"_ConnectionBase.poll"}),
    "/multiprocessing/pool.py": frozenset({"ApplyResult.ready"}),
    "/multiprocessing/process.py": frozenset({"BaseProcess.is_alive"}),
    "/concurrent/futures/_base.py": frozenset({"Future.done", "Future.running"}),
    "/threading.py": frozenset({"Event.is_set", "Event.isSet", "Event.wait", "Thread.is_alive"}),
}


def polling(profile: Profile, whole: int) -> list[Finding]:
    """Report functions that spend much processor time on asking for work.

    Args:
        profile: the profile.
        whole: elapsed time of the main threads without imports and compiling, ns.
    """
    asking = _asking(profile)
    if not asking.count():
        return []
    tree = profile.tree
    least = max(_LEAST_NS, _LEAST_SHARE * whole)
    in_operators = tree.at_or_below(profile.is_kind(FrameKind.OPERATOR))
    spent = np.where(in_operators, 0, exclusive_or_zeros(profile, _CPU))
    # A question may be shorter than the loop around it, which is on the line that asks.
    asks = asking.nodes()
    lines = np.zeros(len(tree), np.bool_)
    lines[tree.parent[asks]] = True
    lines |= tree.at_or_below(asking.mask())
    found = []
    for location in source_locations.by_function(asking, _CPU, least * _LEAST_QUESTIONS):
        of_function = source_locations.in_functions_of(profile, np.array(location.nodes[:1]))
        value = int(spent[of_function].sum())
        is_loop = int(spent[of_function & lines].sum()) >= _LEAST_ASKING * value
        is_loop &= location.value >= _LEAST_QUESTIONS * value
        if location.frame and value >= least and is_loop:
            found.append(_finding(profile, location, value, whole))
    return found


def _asking(profile: Profile) -> Query:
    """Select the calls by the program's own code of functions that answer at once."""
    frames, tree = profile.frames, profile.tree
    asks = np.array(
        [_is_question(file, name) for file, name in _files_and_names(profile)], np.bool_
    )
    is_user = frames.is_user_code()
    above = np.where(tree.parent == NO_NODE, 0, tree.parent)
    called = asks[tree.frame] & is_user[tree.frame[above]]
    return Query(profile, called & profile.is_kind(FrameKind.PYTHON))


def _files_and_names(profile: Profile) -> list[tuple[str, str]]:
    frames = profile.frames
    return [
        (frames.strings[int(file)], frames.strings[int(name)])
        for file, name in zip(frames.file.tolist(), frames.name.tolist(), strict=True)
    ]


def _is_question(file: str, name: str) -> bool:
    path = file.replace("\\", "/")
    return any(name in names and path.endswith(end) for end, names in _ASKING.items())


def _finding(
    profile: Profile, location: source_locations.Location, value: int, whole: int
) -> Finding:
    share = value / max(whole, 1)
    called = profile.frame(location.nodes[0]).name
    return Finding(
        id="host_work",
        severity=Severity.of_share(min(share, 1.0)),
        title=(
            f"{source_locations.location_text(profile, location.frame)} asks again and again "
            f"({called}) instead of waiting, and uses a processor {min(share, 1.0):.0%} of the time"
        ),
        nodes=location.nodes[:8],
        evidence={"polling_ns": value, "asking_ns": location.value, "polling_share": share},
        gain=Gain(
            _CPU,
            value,
            value / max(total(profile, _CPU), 1),
            "the thread sleeps until there is work",
        ),
        advice=(
            "wait instead of asking: queue.get() blocks until there is something (then get_nowait() for "
            "more of the same batch), Event.wait(), future.result() or concurrent.futures.wait; a thread "
            "that spins takes a processor and Python's lock from the threads that work"
        ),
        misleads="an answer within microseconds is worth a processor, and there is one to spare",
    )
