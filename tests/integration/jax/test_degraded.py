"""Each private name of jax is removed in turn: less is recorded, and the outcome says what and why."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from deepcontext.collectors.jax.names import PRIVATE_NAMES, PrivateName

pytest.importorskip("jax")

if TYPE_CHECKING:
    from tests.integration.jax.conftest import RunProgram

# Every place of the name is made a name that does not exist, before the session starts.
_PROGRAM = """
    import dataclasses
    from deepcontext.collectors.jax import names as jax_names

    gone = {gone!r}
    known = jax_names._BY_NAME
    if gone:
        places = tuple((m, p + "_of_another_version") for m, p in known[gone].places)
        known[gone] = dataclasses.replace(known[gone], places=places)

    import deepcontext
    deepcontext.start({output!r}, jax_exact=True)
    import jax, jax.numpy as jnp, time

    @jax.jit
    def step(x):
        return jnp.tanh(x @ x)

    x = jnp.ones((64, 64))
    for _ in range(30):
        x = step(x)
        time.sleep(0.02)
    total = float(x.sum())
    assert total == total
    deepcontext.stop()
    """
# What must still be there without the name.
_LAUNCHES = {"jit_factory": None if sys.version_info < (3, 12) else 30}
_NO_TIMES = {"profiler_session", "profiler_options", "backends"}


@pytest.mark.parametrize("name", PRIVATE_NAMES, ids=lambda name: name.what)
def test_a_missing_private_name_degrades_with_its_reason(
    run_program: RunProgram, name: PrivateName
) -> None:
    recording = run_program(_PROGRAM, name.what)
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


def test_with_every_name_nothing_is_degraded(run_program: RunProgram) -> None:
    recording = run_program(_PROGRAM, "")
    assert (recording.collector.status, recording.collector.reason) == ("ran", "")
    assert recording.launches("step") == 30
