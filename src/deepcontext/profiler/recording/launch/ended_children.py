"""How the recorded children of this process end, seen without waiting for any of them.

An exit status is read from two places: the object that `multiprocessing` or `subprocess` keeps for a
child, after the program has asked for the status, and `/proc`, while the child is not reaped. Invariant: this
module waits for nothing, handles no signal, and keeps no object of the program alive.
"""

from __future__ import annotations

import gc
import os
import sys
from typing import TYPE_CHECKING, Any, Final

from deepcontext.profiler.format import run_directory
from deepcontext.profiler.format.child_ends import SECTION, ChildEnds, SeenEnd
from deepcontext.profiler.recording import clock
from deepcontext.profiler.recording.launch.own_children import MOST_WATCHED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

_RUNS: Final = "runs"
_GONE: Final = "gone"
# A process starts before it names its profile, within this tolerance for clock adjustments.
_CLOCK_TOLERANCE_S: Final = 60.0


class EndedChildren:
    """Checks the children of this process that have a profile, and remembers how they ended."""

    def __init__(self, run: Path) -> None:
        """Look for children whose profiles are in the run directory `run`."""
        self._run = run
        # Attributes of Popen objects. They hold the exit status after the object itself is gone.
        self._watched: dict[int, dict[str, Any]] = {}
        self._ended: dict[int, SeenEnd] = {}
        self._sought: set[int] = set()  # children whose Popen objects were looked for
        self._running: frozenset[int] = frozenset()
        self._seen_unix_ns = 0

    def look(self, forked: Sequence[dict[str, Any]] = ()) -> None:
        """Check the children now.

        Args:
            forked: attributes of the Popen objects of children that were forked since the last check.
        """
        recorded = run_directory.process_numbers(self._run)
        self._seen_unix_ns = clock.unix_ns()
        for attributes in (*forked, *_popens(), *self._started(recorded)):
            if isinstance(attributes.get("pid"), int) and len(self._watched) < MOST_WATCHED:
                self._watched.setdefault(attributes["pid"], attributes)
        running = self._look_in_proc(recorded)
        for pid, attributes in list(self._watched.items()):
            status = attributes.get("returncode")
            if isinstance(status, int):
                running.discard(pid)  # another process has this number now
                if pid in recorded:
                    self._note(pid, status)
            if status is not None or not _exists(pid):
                del self._watched[pid]
        self._running = frozenset(running)

    def _started(self, recorded: Mapping[int, int]) -> Sequence[dict[str, Any]]:
        """Return the attributes of `subprocess`'s Popen objects of children that are new here.

        No list leads to them, so all objects are looked through: some 30 ms for a million, once for a
        child that uses a framework.
        """
        kind = getattr(sys.modules.get("subprocess"), "Popen", None)
        new = {pid for pid in _children() if pid in recorded} - self._watched.keys() - self._sought
        if not isinstance(kind, type) or not new or len(self._sought) >= MOST_WATCHED:
            return ()
        self._sought |= new
        objects = (each for each in gc.get_objects() if issubclass(type(each), kind))
        return [each.__dict__ for each in objects if each.__dict__.get("pid") in new]

    def _look_in_proc(self, recorded: Mapping[int, int]) -> set[int]:
        """Return the recorded processes that run, and note children that have ended.

        A process that another child has started, or that no longer has a parent, counts as running, too.
        """
        running = set()
        own = {*_children(), *self._watched}
        for pid, begun_ms in recorded.items():
            status = _status_of_unreaped(pid, begun_ms)
            if isinstance(status, int):
                if pid in own:
                    self._note(pid, status)
            elif status == _RUNS and pid != os.getpid():
                running.add(pid)
        return running

    def sections(self, *, is_last: bool) -> dict[str, bytes]:
        """Return what was seen as a section of the profile; none if there is no sign of a child.

        Args:
            is_last: whether this process closes its profile.
        """
        times = os.times()
        if not (self._ended or self._running or times.children_user or times.children_system):
            return {}
        seen = ChildEnds(is_last, self._seen_unix_ns, self._running, dict(self._ended))
        return {SECTION: seen.encode()}

    def _note(self, pid: int, status: int) -> None:
        known = self._ended.get(pid)
        # A child is seen again until it is reaped. Another status means another process with the
        # number.
        if known is None or known.status != status:
            self._ended[pid] = SeenEnd(status, self._seen_unix_ns)


def _popens() -> Iterator[dict[str, Any]]:
    """Yield the attributes of the Popen objects that `multiprocessing` keeps for this process's children."""
    process = sys.modules.get("multiprocessing.process")
    dangling = getattr(process, "_dangling", None)
    if dangling is None:
        return
    # Copied in one step, because other threads start children.
    for reference in tuple(dangling.data):
        each = reference()
        popen = getattr(each, "_popen", None)
        if popen is not None and each._parent_pid == os.getpid():  # noqa: SLF001
            yield popen.__dict__


def _children() -> list[int]:
    found: list[int] = []
    for task in os.listdir("/proc/self/task"):  # noqa: PTH208  pathlib's is a wrapper
        try:
            found += map(int, _read(f"/proc/self/task/{task}/children").split())
        except OSError:  # the thread has ended, or the kernel lists no children
            continue
    return found


def _status_of_unreaped(pid: int, begun_ms: int) -> int | str:
    """Return the exit status of a child that has ended and is not reaped, otherwise whether it runs.

    Args:
        pid: its number, which another process may have by now.
        begun_ms: when it began to record, ms since 1970.
    """
    try:
        # Source: proc_pid_stat(5), fields 3 and 52; the name in parentheses may hold anything.
        fields = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    except OSError:
        return _GONE
    started_s = int(fields[19]) / os.sysconf("SC_CLK_TCK") - _uptime_s()
    if clock.unix_ns() / 1e9 + started_s > begun_ms / 1000 + _CLOCK_TOLERANCE_S:
        return _GONE
    if fields[0] not in {b"Z", b"X"}:
        return _RUNS
    return os.waitstatus_to_exitcode(int(fields[49]))


def _uptime_s() -> float:
    return float(_read("/proc/uptime").split()[0])


def _exists(pid: int) -> bool:
    return os.access(f"/proc/{pid}", os.F_OK)


def _read(path: str) -> bytes:
    with open(path, "rb") as file:  # noqa: PTH123  no more is imported than must be
        return file.read()
