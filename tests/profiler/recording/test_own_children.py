"""Children of this process are looked at from their first sign on, and never reaped."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

# In a process of its own, because processes that run tests have had children.
PROGRAM = """
import os, pathlib, sys
from deepcontext.profiler.recording.launch.own_children import OwnChildren

LOOKERS = "deepcontext.profiler.recording.launch.ended_children"
children = OwnChildren(pathlib.Path(sys.argv[1]))
children.look()
assert LOOKERS not in sys.modules
assert children.sections(is_last=True) == {} == children.sections(is_last=False)
assert children.counters() == {"missed_children": 0, "ended_children_ns": 0}
assert children.notes() == []
{start}
children.look()
assert LOOKERS in sys.modules
{end}
"""


def run(folder: Path, start: str, end: str) -> None:
    program = PROGRAM.replace("{start}", start).replace("{end}", end)
    done = subprocess.run(
        [sys.executable, "-c", program, str(folder)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_child_that_runs_is_a_sign(tmp_path: Path) -> None:
    start = "pid = os.spawnl(os.P_NOWAIT, '/bin/sleep', 'sleep', '600')"
    run(tmp_path, start, "os.kill(pid, 9)\nassert os.waitpid(pid, 0)[1] == 9")


def test_a_child_that_nobody_has_reaped_is_a_sign_and_stays(tmp_path: Path) -> None:
    start = (
        "pid = os.spawnl(os.P_NOWAIT, '/bin/sh', 'sh', '-c', 'exit 7')\n"
        "os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)"
    )
    run(tmp_path, start, "assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7")


def test_processor_time_of_a_child_that_was_reaped_is_a_sign(tmp_path: Path) -> None:
    busy = "import time\nwhile time.process_time() < 0.1: pass"
    start = f"os.spawnl(os.P_WAIT, sys.executable, 'python', '-c', {busy!r})"
    run(tmp_path, start, "assert children.counters()['ended_children_ns'] > 50e6")


def test_a_failed_look_is_a_note(tmp_path: Path) -> None:
    start = (
        "def refuse(*_): raise PermissionError(13, 'not permitted')\n"
        "os.listdir = refuse\n"
        "pid = os.spawnl(os.P_NOWAIT, '/bin/true', 'true')"
    )
    text = "could not look for children: PermissionError: [Errno 13] not permitted"
    run(tmp_path, start, f"os.waitpid(pid, 0)\nassert children.notes() == [{text!r}]")
