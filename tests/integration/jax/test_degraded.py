"""Each private name of jax is removed in turn: less is recorded, and the outcome says what and why."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from deepcontext.collectors.jax.names import PRIVATE_NAMES, PrivateName
from deepcontext.profiler.model.profile import Profile
from tests.integration.jax.conftest import Recording

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Recorded = Callable[[str], Recording]

# Every place of the name is made a name that does not exist, before the session starts. Each in a forked
# child, so that jax is imported once.
_PROGRAM = """
import dataclasses, os, sys, time
import deepcontext, jax, jax.numpy as jnp
from deepcontext.collectors.jax import names as jax_names

def train(gone):
    known = jax_names._BY_NAME
    if gone != "none":
        places = tuple((m, p + "_of_another_version") for m, p in known[gone].places)
        known[gone] = dataclasses.replace(known[gone], places=places)
    deepcontext.start(gone + ".dcprof", jax_exact=True)

    @jax.jit
    def step(x):
        return jnp.tanh(x @ x)

    x = jnp.ones((64, 64))
    for _ in range(30):
        x = step(x)
        time.sleep(0.005)
    total = float(x.sum())
    assert total == total
    deepcontext.stop()

for gone in sys.argv[1:]:
    child = os.fork()
    if child == 0:
        train(gone)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, gone
"""
# What must still be there without the name.
_LAUNCHES = {"jit_factory": None if sys.version_info < (3, 12) else 30}
_NO_TIMES = {"profiler_session", "profiler_options", "backends"}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """Return a function that returns the recording without a name, or with "none" gone."""
    folder = tmp_path_factory.mktemp("names")
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, "none", *(name.what for name in PRIVATE_NAMES)],
        cwd=folder,
        env={**os.environ, "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return lambda gone: Recording(Profile.load(folder / f"{gone}.dcprof"))


@pytest.mark.long
@pytest.mark.parametrize("name", PRIVATE_NAMES, ids=lambda name: name.what)
def test_a_missing_private_name_degrades_with_its_reason(
    recorded: Recorded, name: PrivateName
) -> None:
    recording = recorded(name.what)
    report = recording.collector
    if name.what == "jit_type":  # found in another way, nothing is lost
        assert report.details["dispatch"] == "vectorcall"
    else:
        assert report.status == "degraded"
    module, path = name.places[0]
    assert f"{module}.{path}" in report.reason
    assert name.loss in report.reason
    expected = _LAUNCHES.get(name.what, 30)
    if expected is not None:
        assert recording.launches("step") in {expected, expected + 1}
    if name.what in _NO_TIMES:
        assert recording.device_ns("step") == 0
    elif name.what != "jit_factory":
        assert recording.device_ns("step") > 0


def test_with_every_name_nothing_is_degraded(recorded: Recorded) -> None:
    recording = recorded("none")
    assert (recording.collector.status, recording.collector.reason) == ("ran", "")
    assert recording.launches("step") == 30


def test_functions_that_the_garbage_collector_hides_are_said_to_be_missing(tmp_path: Path) -> None:
    program = """
import gc
import deepcontext, jax, jax.numpy as jnp

step = jax.jit(lambda x: jnp.tanh(x @ x))
x = step(jnp.ones((8, 8)))
gc.freeze()
deepcontext.start("out.dcprof")
for _ in range(20):
    x = step(x)
deepcontext.stop()
"""
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True)
    profile = Profile.load(tmp_path / "out.dcprof")
    (jax,) = (each for each in profile.trust.collectors if each.name == "jax")
    assert "gc.freeze()" in jax.reason
