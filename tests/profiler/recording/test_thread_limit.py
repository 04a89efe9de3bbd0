"""A process that cannot start more threads runs as without the profiler, and its profile says so."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING

import pytest

from deepcontext import Profile

if TYPE_CHECKING:
    from pathlib import Path

# A stack too large for any machine: pthread_create() fails with EAGAIN, as at RLIMIT_NPROC or a
# container's limit, which do not apply to root.
LIMIT = """
import ctypes, sys
libc = ctypes.CDLL(None)

def allow_threads(may_start):
    attributes = ctypes.create_string_buffer(256)
    libc.pthread_attr_init(attributes)
    libc.pthread_attr_setstacksize(attributes, ctypes.c_size_t(8 << 20 if may_start else 1 << 46))
    assert libc.pthread_setattr_default_np(attributes) == 0

def work(seconds):
    import time
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(1000))
"""


def run(folder: Path, program: str) -> Profile:
    """Run a program that writes out.dcprof, and return the profile."""
    output_of(folder, program)
    return Profile.load(folder / "out.dcprof")


def output_of(folder: Path, program: str) -> str:
    """Return what a program prints; fail if its status is not 0 or its stderr is not empty."""
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", LIMIT + textwrap.dedent(program)],
        cwd=folder,
        env=os.environ
        | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr, done.stderr
    return done.stdout


def test_a_session_starts_without_the_profilers_threads(tmp_path: Path) -> None:
    profile = run(
        tmp_path,
        """
        import deepcontext
        allow_threads(False)
        deepcontext.start("out.dcprof")
        work(0.05)
        deepcontext.stop()
        allow_threads(True)
        deepcontext.start("out.dcprof")  # an incomplete first start would abort the process here
        deepcontext.stop()
        allow_threads(False)
        deepcontext.start("out.dcprof")
        with deepcontext.scope("recorded all the same"):
            work(0.05)
        deepcontext.stop()
        """,
    )
    (sampling,) = [c for c in profile.trust.collectors if c.name == "cpu sampling"]
    assert "no more threads" in sampling.reason
    assert any("no snapshot could be written" in note for note in profile.trust.notes)
    assert {node.frame.name for node in profile.query().kind("scope")} == {"recorded all the same"}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_fork_may_leave_no_room_for_the_profilers_threads(tmp_path: Path) -> None:
    profile = run(
        tmp_path,
        """
        import os
        import deepcontext
        deepcontext.start("out.dcprof")
        work(0.2)
        allow_threads(False)
        for _ in range(2):
            child = os.fork()
            if child == 0:
                os._exit(0)
            os.waitpid(child, 0)
            work(0.05)
        allow_threads(True)
        deepcontext.stop()
        """,
    )
    (sampling,) = [c for c in profile.trust.collectors if c.name == "cpu sampling"]
    assert sampling.status == "degraded"
    assert "after a fork" in sampling.reason
    assert profile.trust.counters["samples_running"] + profile.trust.counters["samples_waiting"] > 0
    assert profile.trust.counters["forked_children"] == 2


def test_join_returns_for_a_thread_that_never_started(tmp_path: Path) -> None:
    output = output_of(
        tmp_path,
        """
        from deepcontext.collectors.jax.sampling import Sampler
        from deepcontext.collectors.shared.internal_thread import InternalThread
        allow_threads(False)
        thread = InternalThread(lambda: print("never"))
        print(thread.start())
        thread.join()
        sampler = Sampler(None, exact=False)
        sampler._start()
        sampler.uninstall()
        print(*sampler.state.refusals)
        allow_threads(True)
        runs = []
        thread = InternalThread(lambda: runs.append("once"))
        was_started = thread.start()
        thread.join()
        print(was_started, *runs)
        """,
    )
    refused, reason, started = output.splitlines()
    assert refused == "False"
    assert "no more threads" in reason
    assert started == "True once"
