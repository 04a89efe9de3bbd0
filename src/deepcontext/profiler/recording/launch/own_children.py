"""What a session knows about the children of its process; loads nothing before the first sign of a child.

Most programs start no process, and pay for one system call at each snapshot.
Invariant: no child is reaped; the program alone waits for its children.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from deepcontext.profiler.format import run_directory
from deepcontext.profiler.format.own_os import os, read_file
from deepcontext.profiler.recording.descriptors import with_descriptors

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from types import FrameType

    from deepcontext.profiler.recording.launch.ended_children import EndedChildren
    from deepcontext.profiler.recording.launch.missed_children import MissedChildren

# Only a program that starts very many processes has more children than this.
MOST_WATCHED: Final = 4 * run_directory.MOST_CHILDREN


class OwnChildren:
    """How this process's recorded children ended, and which children have no profile but should."""

    def __init__(self, run: Path) -> None:
        """Look for children whose profiles are or should be in the run directory `run`."""
        self._run = run
        self._spent_s = _spent_s()
        self._reaped = _faults_of_reaped()
        self._forked: list[dict[str, Any]] = []  # attributes of `multiprocessing`'s Popen objects
        self._ended: EndedChildren | None = None
        self._missed: MissedChildren | None = None
        self._failure = ""

    def note_fork(self, frame: FrameType) -> None:
        """Remember the Popen object of a child that has just been forked.

        Args:
            frame: the frame that called `os.fork`, in the parent.
        """
        code = frame.f_code
        is_start = code.co_name == "_launch" and code.co_filename.endswith("/popen_fork.py")
        if is_start and len(self._forked) < MOST_WATCHED:
            self._forked.append(frame.f_locals["self"].__dict__)

    @property
    def has_seen_child(self) -> bool:
        """Whether this process has or had a child."""
        return (
            self._ended is not None
            or bool(self._forked)
            or _has_child()
            or _faults_of_reaped() > self._reaped
        )

    def look(self) -> None:
        """Check the children now, if this process has or had a child."""
        if not self.has_seen_child:
            return
        try:
            self._look()
        except Exception as error:  # noqa: BLE001  the profile is worth more than this look
            self._failure = f"could not look for children: {type(error).__name__}: {error}"

    def _look(self) -> None:
        if self._ended is None or self._missed is None:
            from deepcontext.profiler.recording.launch import (  # noqa: PLC0415  see above
                ended_children,
                missed_children,
            )

            self._missed = missed_children.MissedChildren(self._run)
            self._ended = ended_children.EndedChildren(self._run)
        forked, self._forked = self._forked, []
        self._ended.look(forked)
        self._missed.look()

    def counters(self) -> Mapping[str, int]:
        """Return the missed children, and the processor time of ended children in ns."""
        spent_ns = round((_spent_s() - self._spent_s) * 1e9)
        missed = self._missed.count if self._missed else 0
        return {"missed_children": missed, "ended_children_ns": spent_ns}

    def notes(self) -> list[str]:
        """Return a text for each missed child, and why children could not be checked."""
        missed = self._missed.notes() if self._missed else []
        return [*missed, self._failure] if self._failure else missed

    def sections(self, *, is_last: bool) -> Mapping[str, bytes]:
        """Return how children ended as a section of the profile; none if there is no sign of a child.

        Args:
            is_last: whether this process closes its profile.
        """
        return self._ended.sections(is_last=is_last) if self._ended else {}


def _spent_s() -> float:
    """Return the processor time of children that have been waited for, in seconds."""
    times = os.times()
    return times.children_user + times.children_system


def _faults_of_reaped() -> int:
    """Return the page faults of children that have been waited for: every process has some."""
    # Their processor time is counted in steps of 10 ms. Source: proc_pid_stat(5), field 11.
    stat = with_descriptors(lambda: read_file("/proc/self/stat"))
    return int(stat.rpartition(b")")[2].split()[8])


def _has_child() -> bool:
    """Return whether this process has a child, running or not reaped; does not reap it."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True
