"""Where memory runs out in a hook, the program goes on, and the profile says what is missing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import deepcontext

SOURCE = Path(__file__).resolve().parents[2] / "fakes" / "no_memory.cpp"

pytest.importorskip("jax", reason="jax is in the dependency group 'frameworks'")

PROGRAM = """
import contextlib, ctypes, faulthandler, sys, threading
faulthandler.dump_traceback_later(100, exit=True)
import deepcontext
from deepcontext import _native
deepcontext.start(sys.argv[1], snapshot_interval=0, cpu_rate=0)
import jax, jax.numpy as jnp, numpy
with contextlib.suppress(ImportError):
    import torch
shim, native = ctypes.CDLL(None), ctypes.CDLL(_native.__file__)
shim.no_memory_for(ctypes.cast(native.deepcontext_locks_held, ctypes.c_void_p))

@jax.jit
def step(state):
    return {"x": state["x"] + 1}

@jax.jit
def refused(x):
    return x @ x

state = step({"x": jnp.zeros(3)})
kept = []
seen = []

def work():
    global state
    for _ in range(700):  # more arrays than the table of their makers holds at first
        state = step(state)
        kept.append(state)
    seen.append(numpy.asarray(state["x"]).tolist())
    try:
        refused(jnp_wrong)
    except TypeError:
        seen.append("TypeError")
    if "torch" in sys.modules:
        seen.append((tensor + tensor).sum().item())

jnp_wrong = jnp.ones((2, 3))
tensor = torch.ones(1000) if "torch" in sys.modules else None
work()
expected, seen = seen, []
state = step({"x": jnp.zeros(3)})
kept.clear()
for run in (work, threading.Thread(target=work).start):  # a new thread needs a recorder
    before = len(seen)
    shim.no_memory_fail(1)
    run()
    while len(seen) < before + len(expected):
        pass
    shim.no_memory_fail(0)
    assert seen[before:][1:] == expected[1:], seen
assert seen[0] == expected[0] and seen[len(expected)] == [1401.0] * 3, seen
assert shim.no_memory_failures() > 500, shim.no_memory_failures()
deepcontext.stop()
"""


@pytest.mark.long
def test_hooks_that_run_out_of_memory(tmp_path: Path) -> None:
    compiler = shutil.which("g++") or shutil.which("c++")
    if compiler is None:
        pytest.skip("needs a C++ compiler")
    library, output = tmp_path / "no_memory.so", tmp_path / "out.dcprof"
    options = ["-std=c++17", "-O1", "-shared", "-fPIC", "-o", str(library)]
    subprocess.run([compiler, *options, str(SOURCE)], check=True)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(output)],
        env={**os.environ, "JAX_PLATFORMS": "cpu", "LD_PRELOAD": str(library)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, f"status {done.returncode}\n{done.stderr[-5000:]}"
    notes = deepcontext.Profile.load(output).trust.notes
    assert any("memory ran out" in note for note in notes), notes
