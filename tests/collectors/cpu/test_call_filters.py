"""Programs under filters of system calls (seccomp) that end a process at a call of the sampler."""

from __future__ import annotations

import platform
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from deepcontext import Profile

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="numbers of x86-64's calls")

# Source: linux/seccomp.h, linux/filter.h; numbers of process_vm_readv and rt_tgsigqueueinfo.
_FILTER = """
import ctypes, struct, sys
def install(*calls, flags=0):
    libc = ctypes.CDLL(None, use_errno=True)
    rules = [struct.pack("HBBI", 0x20, 0, 0, 0)]
    rules += [struct.pack("HBBI", 0x15, len(calls) - i, 0, call) for i, call in enumerate(calls)]
    rules += [struct.pack("HBBI", 0x06, 0, 0, 0x7fff0000), struct.pack("HBBI", 0x06, 0, 0, 0x80000000)]
    code = ctypes.create_string_buffer(b"".join(rules))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(rules), ctypes.addressof(code)))
    assert libc.prctl(38, 1, 0, 0, 0) == 0
    assert libc.syscall(317, 1, flags, ctypes.byref(program)) == 0
READ, ASK = 310, 297
"""
_BURN = """
import time
from deepcontext import _native
def burn_until_told():
    end = time.time() + 100
    while not _native.sampler_limitation() and time.time() < end:
        burn(0.05)
def burn(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass
"""
_OPTIONS = ("-q", "-o", "out.dcprof", "--cpu-rate", "1000", "--snapshot-interval", "0")


def _reason(folder: Path, program: str, before: str = "") -> str:
    """Run a program, after a filter was set that it inherits; return what the profile says of samples."""
    (folder / "program.py").write_text(_FILTER + _BURN + program, encoding="utf-8")
    words = [sys.executable, "-m", "deepcontext", "profile", *_OPTIONS, "program.py"]
    start = f"{_FILTER}{before}\nimport os\nos.execv({words[0]!r}, {words!r})"
    done = subprocess.run(
        [sys.executable, "-c", start], cwd=folder, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    profile = Profile.load(folder / "out.dcprof")
    (report,) = [each for each in profile.trust.collectors if each.name == "cpu sampling"]
    return f"{report.status}: {report.reason}"


def test_memory_is_read_in_another_way(tmp_path: Path) -> None:
    assert _reason(tmp_path, "burn(0.3); print('done')", "install(READ)") == "ran: "


def test_no_thread_is_asked_where_asking_ends_the_process(tmp_path: Path) -> None:
    told = _reason(tmp_path, "burn(0.3); print('done')", "install(READ, ASK)")
    assert "would end the program at a signal of the sampler" in told


def test_a_thread_that_sets_a_filter_is_asked_no_more(tmp_path: Path) -> None:
    told = _reason(tmp_path, "burn(0.1); install(READ, ASK); burn_until_told(); print('done')")
    assert "running threads were charged without a line afterwards" in told


def test_a_filter_for_all_threads_ends_the_sampling(tmp_path: Path) -> None:
    told = _reason(tmp_path, "burn(0.1); install(ASK, flags=1); burn_until_told(); print('done')")
    assert "sampling ended early" in told
