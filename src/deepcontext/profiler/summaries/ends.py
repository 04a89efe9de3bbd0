"""How each process of a job ended, as far as known, and how much time its profile lacks.

A process that closes its profile records its end. For any other process, the parent knows the exit
status, or that the process was gone; otherwise this machine knows whether it still runs. Does not read
files.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from deepcontext.profiler.format import child_ends
from deepcontext.profiler.model.still_running import end_text, is_running

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepcontext.profiler.format.child_ends import SeenEnd
    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.model.run_info import RunInfo

_SNAPSHOT: Final = "snapshot"
_EXIT: Final = "exit"
_RUNNING: Final = "still running"
_GONE: Final = "crashed, killed or os._exit"


@dataclass(frozen=True, slots=True)
class End:
    """How one process ended.

    Attributes:
        text: how the process ended, as far as known; "" for a normal end.
        status: exit status, the negative number of the signal that ended the process; None where
            no process saw the end.
        uncovered_ns: upper bound of the time between the profile's last snapshot and the end of the
            process, ns; None for a profile that the process closed.
    """

    text: str = ""
    status: int | None = None
    uncovered_ns: int | None = None


def ends_of(profiles: Sequence[Profile]) -> list[End]:
    """Return how each process of a job ended.

    Args:
        profiles: one for each process of the job.
    """
    last_ns: dict[str, int] = {}
    of_process: dict[tuple[str, int], list[RunInfo]] = {}
    for profile in profiles:
        run = profile.run
        last_ns[run.hostname] = max(last_ns.get(run.hostname, 0), _covered_until(run))
        of_process.setdefault((run.hostname, run.pid), []).append(run)
    seen: dict[int, SeenEnd] = {}  # by identity of the run
    left: dict[int, tuple[str, int]] = {}
    for profile in profiles:
        payload = profile.sections.get(child_ends.SECTION)
        if payload is None:
            continue
        look, host = child_ends.decode(payload), profile.run.hostname
        for pid, end in look.ended.items():
            child = _begun_before(of_process.get((host, pid), ()), end.seen_unix_ns)
            if child is not None:
                seen[id(child)] = end
        for run in _without_end(of_process, profile.run, look):
            text = _RUNNING if run.pid in look.running else _GONE
            left[id(run)] = text, look.seen_unix_ns
    return [
        _end(each.run, seen.get(id(each.run)), left.get(id(each.run)), last_ns[each.run.hostname])
        for each in profiles
    ]


def _without_end(
    of_process: dict[tuple[str, int], list[RunInfo]],
    parent: RunInfo,
    look: child_ends.ChildEnds,
) -> list[RunInfo]:
    """Return the processes that were running or gone when their parent closed its profile."""
    if not look.is_last:
        return []
    return [
        run
        for (host, pid), runs in of_process.items()
        for run in runs
        if host == parent.hostname
        and (run.parent_pid == parent.pid or pid in look.running)
        # A later snapshot shows that the process continued.
        and parent.start_unix_ns <= run.start_unix_ns
        and _covered_until(run) <= look.seen_unix_ns
    ]


def _begun_before(runs: Sequence[RunInfo], time_ns: int) -> RunInfo | None:
    """Return the last of several processes with one number that had begun at a time."""
    begun = [run for run in runs if run.start_unix_ns <= time_ns]
    return max(begun, key=lambda run: run.start_unix_ns, default=None)


def _end(run: RunInfo, seen: SeenEnd | None, left: tuple[str, int] | None, last_ns: int) -> End:
    status = None if seen is None else seen.status
    if run.exit_reason != _SNAPSHOT:
        if status is not None and (status < 0 or (status and run.exit_reason == _EXIT)):
            return End(_status_text(status), status)
        return End("" if run.exit_reason == _EXIT else run.exit_reason, status)
    if seen is not None:
        text, until_ns = _status_text(seen.status), seen.seen_unix_ns
    else:
        text, until_ns = left or (end_text(run), last_ns)
        if text == _RUNNING and is_running(run) is False:
            text = _GONE  # since its parent has closed its profile
    return End(text, status, max(until_ns - _covered_until(run), 0))


def _status_text(status: int) -> str:
    if status >= 0:
        return f"exited {status}"
    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:  # a real-time signal
        return f"killed by signal {-status}"


def _covered_until(run: RunInfo) -> int:
    return run.start_unix_ns + run.wall_ns
