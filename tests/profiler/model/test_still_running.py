"""Whether a recorded process runs now, asked of real processes."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import time
from typing import TYPE_CHECKING, Any

import pytest

from deepcontext.profiler.format.pid_space import pid_space
from deepcontext.profiler.model.job.rank_row import rank_row
from deepcontext.profiler.model.run_info import RunInfo
from deepcontext.profiler.model.still_running import end_text, is_running
from deepcontext.profiler.summaries.ends import ends_of
from tests.synthetic import random_profile

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process
        process.kill()


def recorded(pid: int) -> RunInfo:
    """Return the run of a process whose last snapshot was written now."""
    space = pid_space()
    assert space
    now_ns = time.time_ns()
    return RunInfo(pid=pid, exit_reason="snapshot", pid_space=space, start_unix_ns=now_ns)


def test_a_process_that_runs(child: subprocess.Popen[bytes]) -> None:
    run = recorded(child.pid)
    assert (is_running(run), end_text(run)) == (True, "still running")
    assert is_running(recorded(os.getpid()))


def test_a_process_that_ended(child: subprocess.Popen[bytes]) -> None:
    run = recorded(child.pid)
    child.send_signal(signal.SIGKILL)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert is_running(run) is False  # nobody has reaped it
    child.wait()
    assert (is_running(run), end_text(run)) == (False, "crashed, killed or os._exit")
    profile = dataclasses.replace(random_profile(2, seed=0, depth=2), run=run)
    assert ends_of([profile])[0].text == "crashed, killed or os._exit"
    assert rank_row(profile, 0, {}, name="", content="").ended == "crashed, killed or os._exit"


def test_a_later_process_with_the_number(child: subprocess.Popen[bytes]) -> None:
    run = dataclasses.replace(recorded(child.pid), start_unix_ns=time.time_ns() - 60 * 10**9)
    assert is_running(run) is False


@pytest.mark.parametrize("facts", [{"pid_space": ""}, {"pid_space": "elsewhere-1"}, {"pid": 0}])
def test_what_this_machine_cannot_tell(facts: dict[str, Any]) -> None:
    run = dataclasses.replace(recorded(os.getpid()), **facts)
    assert (is_running(run), end_text(run)) == (None, "running or killed")
