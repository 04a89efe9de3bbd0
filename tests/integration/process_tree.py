"""Run a command under a time limit that holds for all processes that it has started.

`subprocess.run` ends the command alone: ranks of a launcher would go on for ever, because a launcher that is
killed cannot end them, and they are in sessions of their own.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def run_tree(
    command: Sequence[str], *, cwd: Path, timeout_s: float
) -> subprocess.CompletedProcess[bytes]:
    """Run a command to its end; past the limit, end it with everything below it.

    Raises:
        subprocess.TimeoutExpired: the limit was reached.
        subprocess.CalledProcessError: the command failed.
    """
    with subprocess.Popen(
        command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        try:
            output, errors = process.communicate(timeout=timeout_s)
        except BaseException:
            _end(process.pid)
            raise
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command, output, errors)
    return subprocess.CompletedProcess(command, 0, output, errors)


def _end(root: int) -> None:
    """Stop a process and all below it, so that none can start another one, then kill them."""
    stopped: set[int] = set()
    while found := {root, *_below(root)} - stopped:
        for process in found:
            _send(process, signal.SIGSTOP)
        stopped |= found
    for process in stopped:
        _send(process, signal.SIGKILL)


def _send(process: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, number)


def _below(root: int) -> set[int]:
    children = defaultdict(list)
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            # The name, in parentheses, may contain spaces and parentheses.
            fields = stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            children[int(fields[1])].append(int(stat.parent.name))
    found, left = set(), [root]
    while left:
        left += (more := children[left.pop()])
        found.update(more)
    return found
