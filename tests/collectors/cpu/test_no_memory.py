"""Where memory runs out in the sampler's thread, the thread ends and nothing waits for it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import deepcontext

SOURCE = Path(__file__).resolve().parents[2] / "fakes" / "no_memory.cpp"
PROGRAM = """
import contextlib, ctypes, faulthandler, os, sys, threading
faulthandler.dump_traceback_later(200, exit=True)
import deepcontext
from deepcontext import _native
shim, native = ctypes.CDLL(None), ctypes.CDLL(_native.__file__)
shim.no_memory_for(ctypes.cast(native.deepcontext_locks_held, ctypes.c_void_p))

# A thread body that throws before it is open: `start` must not wait for it.
shim.no_memory_fail(1)
with contextlib.suppress(MemoryError, RuntimeError):
    deepcontext.start(sys.argv[1], force=True, snapshot_interval=0, cpu_rate=1000)
shim.no_memory_fail(0)
assert shim.no_memory_failures() > 0
with contextlib.suppress(deepcontext.errors.SessionError):
    deepcontext.stop()

# One that throws later: it looks at new threads, for which it needs memory.
session = deepcontext.start(sys.argv[1], force=True, snapshot_interval=0, cpu_rate=1000)
before = shim.no_memory_failures()
shim.no_memory_fail(1)
while shim.no_memory_failures() == before:
    threads = [threading.Thread(target=sum, args=(range(100_000),)) for _ in range(20)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
shim.no_memory_fail(0)
session.snapshot()
child = os.fork()  # the sampler pauses and goes on
if child == 0:
    os._exit(0)
os.waitpid(child, 0)
deepcontext.stop()
print("done")
"""


def test_nothing_waits_for_a_sampler_that_ran_out_of_memory(tmp_path: Path) -> None:
    compiler = shutil.which("g++") or shutil.which("c++")
    if compiler is None:
        pytest.skip("needs a C++ compiler")
    library, output = tmp_path / "no_memory.so", tmp_path / "out.dcprof"
    options = ["-std=c++17", "-O1", "-shared", "-fPIC", "-o", str(library)]
    subprocess.run([compiler, *options, str(SOURCE)], check=True)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(output)],
        env={**os.environ, "LD_PRELOAD": str(library)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr[-5000:]
    notes = deepcontext.Profile.load(output).trust.notes
    assert any("memory ran out" in note for note in notes), notes
