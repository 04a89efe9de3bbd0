"""The process above this one that a reader of the job knows.

Between a recorded process and its recorded child may be shells and interpreters without a framework,
and a daemon has lost its parent. Invariant: the answer does not change when a process above ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deepcontext.profiler.format import run_directory
from deepcontext.profiler.format.own_os import os, read_file
from deepcontext.profiler.recording import clock

if TYPE_CHECKING:
    from pathlib import Path

_MOST: Final = 32


class Ancestors:
    """The processes above this one, as they were when this object was made."""

    def __init__(self, run: Path, program: int) -> None:
        """Read the processes above this one.

        Args:
            run: the run directory.
            program: the program that started all processes of the job, 0 if it is not one program.
        """
        self._run = run
        self._program = program
        self._above = _above(program)
        self._begun_ms = clock.unix_ns() // 1_000_000

    def nearest(self) -> int:
        """Return the nearest process above that was recorded before this one; without one, the parent."""
        begun = run_directory.process_numbers(self._run)
        known = (pid for pid in self._above if begun.get(pid, self._begun_ms) < self._begun_ms)
        return next(known, self._program or self._above[0])


def _above(program: int) -> list[int]:
    """Return the parent, its parent and so on, up to `program` at most."""
    found = [os.getppid()]
    try:
        while found[-1] not in {program, 1, 0} and len(found) < _MOST:
            # Source: proc_pid_stat(5), field 4; the name in parentheses may hold anything.
            found.append(int(read_file(f"/proc/{found[-1]}/stat").rpartition(b")")[2].split()[1]))
    except OSError:  # it has ended
        pass
    return found
