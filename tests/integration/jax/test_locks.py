"""Python's memory is not used while a lock of the profiler is held, with real frameworks at work."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import deepcontext

FAKES = Path(__file__).resolve().parents[2] / "fakes"
sys.path.insert(0, str(FAKES))

import locks_check  # noqa: E402

pytest.importorskip("jax", reason="jax is in the dependency group 'frameworks'")

PROGRAM = """
import faulthandler, sys, threading
faulthandler.dump_traceback_later(100, exit=True)
library, fakes, output = sys.argv[1:]
sys.path.insert(0, fakes)
from locks_check import LocksCheck
import deepcontext
check = LocksCheck(library)
deepcontext.start(output, snapshot_interval=0.1, jax_exact=True, cpu_rate=200)
import jax, jax.numpy as jnp, numpy

@jax.jit
def loss(x):
    return (jnp.sin(x) @ x).sum()

def work(rounds):
    for number in range(rounds):
        with deepcontext.scope("round"):
            x = jnp.ones((4 + number % 5, 4 + number % 5))
            jax.jit(jax.grad(loss))(x).block_until_ready()
            numpy.asarray(loss(x))
        deepcontext.step()

thread = threading.Thread(target=work, args=(10,))
thread.start()
work(30)
thread.join()
try:
    import torch
except ImportError:
    pass
else:
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
    for _ in range(20):
        model(torch.ones(2, 4)).sum().backward()
deepcontext.stop()
print(check.count())
"""


@pytest.mark.long
def test_a_session_with_jax_and_pytorch(tmp_path: Path) -> None:
    library, output = locks_check.build(tmp_path), tmp_path / "out.dcprof"
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(library), str(FAKES), str(output)],
        env={**os.environ, "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-5000:]
    assert int(done.stdout) > 100_000
    section = deepcontext.Profile.load(output).sections["jax"]
    assert b'"module": "jit_loss"' in section
