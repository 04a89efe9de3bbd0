"""Whether the process of an unclosed profile is still running, as seen from this machine.

Says nothing about a process of another machine, of another container or from before a reboot.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from deepcontext.profiler.format.pid_space import pid_space

if TYPE_CHECKING:
    from deepcontext.profiler.model.run_info import RunInfo

# The kernel counts the start of a process in steps of 10 ms, and the clock may have been adjusted.
_SLACK_NS: Final = 1_000_000_000


def is_running(run: RunInfo) -> bool | None:
    """Return whether the process runs now; None if this machine cannot know."""
    if run.pid <= 0 or not run.pid_space or run.pid_space != pid_space():
        return None
    try:
        os.kill(run.pid, 0)  # tests only, also where /proc hides processes of other users
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    try:
        # Source: proc_pid_stat(5), fields 3 and 22; the name in parentheses may hold anything.
        fields = Path(f"/proc/{run.pid}/stat").read_bytes().rpartition(b")")[2].split()
        uptime_s = float(Path("/proc/uptime").read_bytes().split()[0])
    except (OSError, IndexError):
        return None
    if fields[0] in {b"Z", b"X"}:
        return False
    age_s = uptime_s - int(fields[19]) / os.sysconf("SC_CLK_TCK")
    begun_unix_ns = time.time_ns() - int(age_s * 1e9)
    # The process has ended if the process with its number began after the last snapshot.
    return begun_unix_ns <= run.start_unix_ns + run.wall_ns + _SLACK_NS


def end_text(run: RunInfo) -> str:
    """Return how a process ended whose profile ends with a snapshot, as far as this machine sees it."""
    match is_running(run):
        case True:
            return "still running"
        case False:
            return "crashed, killed or os._exit"
        case None:
            return "running or killed"
