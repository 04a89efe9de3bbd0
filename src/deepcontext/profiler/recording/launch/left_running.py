"""Processes that a job leaves running: they may still begin to record, so the run directory stays.

A daemon is no child of the program when the program ends, but its environment still names the run
directory. Invariant: this module only reads `/proc`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deepcontext.profiler.format import run_directory
from deepcontext.profiler.format.own_os import os, read_file

if TYPE_CHECKING:
    from pathlib import Path

# Helpers end with the program, and do no work of their own: the resource trackers and the fork server
# of `multiprocessing` and of loky.
_HELPERS: Final = (b"from multiprocessing.", b".resource_tracker import ")


def left_running(run: Path) -> list[int]:
    """Return the processes below this one that run and have no profile yet.

    Takes 30 us a process of this user, so it is called once, at the end.

    Args:
        run: the run directory by which these processes find the profiler.
    """
    mark = os.fsencode(run_directory.launch_folder(run))
    recorded = run_directory.process_numbers(run)
    own = os.getpid()
    begun = _start(own)
    found = []
    for name in os.listdir("/proc"):
        if not name.isdecimal() or (pid := int(name)) == own or pid in recorded:
            continue
        try:
            # An earlier run with this directory may have left daemons, too: they are not of this job.
            if mark in read_file(f"/proc/{pid}/environ") and _start(pid) >= begun:
                command = read_file(f"/proc/{pid}/cmdline")
                found += [pid] if not any(each in command for each in _HELPERS) else []
        except (OSError, IndexError):  # it has ended, or belongs to another user
            continue
    return found


def told(run: Path, label: str) -> tuple[str, ...]:
    """Return the lines to say of the processes that `left_running` returns.

    Args:
        run: the run directory.
        label: the same path as the user would type it.
    """
    try:
        count = len(left_running(run))
    except OSError:  # no /proc
        count = 0
    if not count:
        return ()
    few = count == 1
    text = (
        f"{count} process{'' if few else 'es'} of this job still run{'s' if few else ''}; "
        f"the profile of {'this process' if few else 'each of them'} is added to '{label}' if it uses "
        "torch or jax"
    )
    return (text,)


def _start(pid: int) -> int:
    """Return the start of a process in clock ticks since boot."""
    # Source: proc_pid_stat(5), field 22; the name in parentheses may hold anything.
    return int(read_file(f"/proc/{pid}/stat").rpartition(b")")[2].split()[19])
