"""Ends of real children, seen without a wait that the program did not ask for."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from deepcontext.profiler.format import run_directory
from deepcontext.profiler.format.child_ends import SECTION, decode
from deepcontext.profiler.recording.launch.ended_children import EndedChildren


def _leave_a_profile(run: Path, pid: int) -> None:
    own = run_directory.profile_path(run)
    own.with_name(own.name.replace(f"{os.getpid():07}-", f"{pid:07}-")).touch()


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_the_status_that_the_program_asked_for_is_seen_after_the_process_object_is_gone(
    tmp_path: Path, method: str
) -> None:
    children = EndedChildren(tmp_path)
    process = multiprocessing.get_context(method).Process(target=time.sleep, args=(600,))  # type: ignore[attr-defined]
    process.start()
    pid = process.pid
    assert pid is not None
    _leave_a_profile(tmp_path, pid)
    children.look()
    assert decode(children.sections(is_last=False)[SECTION]).running == {pid}
    process.kill()
    process.join()
    del process
    children.look()
    seen = decode(children.sections(is_last=True)[SECTION])
    assert (seen.running, seen.ended[pid].status) == (frozenset(), -signal.SIGKILL)


@pytest.mark.parametrize("sent", [signal.SIGSEGV, signal.SIGKILL, signal.SIGTERM])
def test_the_status_that_subprocess_has_asked_for_is_seen(tmp_path: Path, sent: int) -> None:
    children = EndedChildren(tmp_path)
    process = subprocess.Popen(["/bin/sleep", "600"])
    _leave_a_profile(tmp_path, process.pid)
    children.look()
    assert decode(children.sections(is_last=False)[SECTION]).running == {process.pid}
    pid = process.pid
    process.send_signal(sent)
    process.wait()
    del process
    children.look()
    seen = decode(children.sections(is_last=True)[SECTION])
    assert (seen.running, seen.ended[pid].status) == (frozenset(), -sent)


def test_a_child_that_nobody_has_reaped_is_not_reaped(tmp_path: Path) -> None:
    children = EndedChildren(tmp_path)
    pid = os.spawnl(os.P_NOWAIT, "/bin/sh", "sh", "-c", "exit 7")
    _leave_a_profile(tmp_path, pid)
    while _state(pid) != "Z":
        time.sleep(0.01)
    children.look()
    assert decode(children.sections(is_last=False)[SECTION]).ended[pid].status == 7
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7


def test_a_process_that_took_over_a_number_does_not_count_as_running(tmp_path: Path) -> None:
    """A daemon is no child of this process, so only its start time says which process it is."""
    own = run_directory.profile_path(tmp_path)
    own.with_name(f"{os.getppid():07}-1.dcprof").touch()
    children = EndedChildren(tmp_path)
    children.look()
    assert children._running == frozenset()
    _leave_a_profile(tmp_path, os.getppid())
    children.look()
    assert children._running == {os.getppid()}


def test_children_without_a_profile_are_not_listed(tmp_path: Path) -> None:
    children = EndedChildren(tmp_path)
    pid = os.spawnl(os.P_NOWAIT, "/bin/sleep", "sleep", "600")
    try:
        children.look()
        sections = children.sections(is_last=False)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    if sections:  # other tests have had children
        assert decode(sections[SECTION]).running == frozenset()
